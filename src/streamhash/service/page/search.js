// Search: choose an item or drop a file of vectors; see its code, and its neighbours beside it.

import { api } from "./api.js";
import { bitsOf, strip } from "./bits.js";
import { announce, choice, el, notice, waiting } from "./elements.js";
import { emptiness } from "./empty.js";
import { agree, agreementOf, facts, itemGrid, labelOf, thumbnail } from "./items.js";
import { FileError, readVectors } from "./vectors.js";
import { counted, plain } from "./format.js";

const SHOWN = 24; // items in the grid

export function searchView(page) {
  const results = el("section", { class: "results", "aria-label": "Results" });
  const grid = itemGrid({ size: SHOWN, cell: itemButton });
  const k = choice(
    "Neighbours",
    [5, 10, 20, 50].map((n) => [n, n]),
    () => again(),
  );
  k.select.value = 10;
  const model = choice("Model", [["", "the one that serves"]], () => again());
  const fileInput = el("input", {
    type: "file",
    accept: ".npy,.json,.csv,.tsv,.txt",
    class: "unseen",
    onchange: () => take(fileInput.files[0]),
  });
  const idInput = el("input", {
    name: "id",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": "Id of an item",
  });
  const element = el(
    "div",
    { class: "view search-view" },
    el(
      "section",
      { class: "asking", "aria-labelledby": "search-title" },
      el("h1", { id: "search-title", tabindex: "-1" }, "Search"),
      el(
        "p",
        { class: "lead" },
        "Choose an item or drop a vector: its nearest neighbours are those whose codes differ in the fewest bits.",
      ),
      el("div", { class: "row controls" }, k.element, model.element),
      el(
        "label",
        { class: "drop" },
        fileInput,
        el("strong", {}, "Drop a vector file here, or choose one"),
        el("span", { class: "quiet" }, ".npy, JSON or CSV; it is read in this browser"),
      ),
      el(
        "form",
        { class: "row by-id", onsubmit: byId },
        el("label", { class: "field" }, el("span", {}, "Item id"), idInput),
        el("button", { type: "submit" }, "Find"),
      ),
      el("h2", {}, "Recent items"),
      grid.element,
    ),
    results,
  );
  const drop = element.querySelector(".drop");
  let query = null; // {id} or {rows, row, name}
  let running = null; // what stops the search under way
  let known = { items: -1, model: -1 };

  for (const [name, on] of [
    ["dragenter", true],
    ["dragover", true],
    ["dragleave", false],
    ["drop", false],
  ]) {
    element.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", on);
      if (name === "drop" && event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
    });
  }

  function itemButton(item) {
    const current = query?.id === item.id;
    return el(
      "a",
      {
        class: "cell",
        href: page.address("search", { id: item.id }),
        "aria-current": current ? "true" : null,
        "aria-label": `Search with item ${plain(item.id)}, ${labelOf(item)}`,
      },
      thumbnail(item),
      el("span", { class: "cell-word" }, labelOf(item)),
    );
  }

  async function byId(event) {
    event.preventDefault();
    const text = idInput.value.trim();
    if (!text) return;
    // The ids of a collection are all whole numbers or all strings; its items tell which.
    const numbers = typeof grid.items[0]?.id === "number";
    if (numbers && !/^\d+$/.test(text)) {
      fail("There is no such item.", "The ids of this collection are whole numbers.");
    } else page.go("search", { id: numbers ? Number(text) : text });
  }

  async function take(file) {
    if (!file) return;
    fileInput.value = "";
    try {
      const rows = await readVectors(file, page.status?.features ?? null);
      query = { rows, row: 0, name: file.name };
      if (location.hash !== "#search") history.replaceState(null, "", "#search");
      markCurrent();
      run();
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      fail("This file cannot be searched with.", error.message);
    }
  }

  const again = () => query && run();

  function fail(title, text, retry = null) {
    results.replaceChildren(notice("problem", title, text, retry));
  }

  function markCurrent() {
    for (const link of grid.element.querySelectorAll(".cell")) {
      const current =
        query?.id !== undefined &&
        link.getAttribute("href") === page.address("search", { id: query.id });
      if (current) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  async function run() {
    running?.abort();
    running = new AbortController();
    const { signal } = running;
    const asked = query;
    const timer = setTimeout(() => results.replaceChildren(waiting("Searching")), 200);
    try {
      const byItem = asked.id !== undefined;
      const body = {
        k: Number(k.select.value),
        model: model.select.value ? Number(model.select.value) : null,
      };
      const [item, answer] = await Promise.all([
        byItem ? api.item(asked.id, { signal }) : null,
        api.search(
          { ...body, ...(byItem ? { ids: [asked.id] } : { vectors: [asked.rows[asked.row]] }) },
          { signal },
        ),
      ]);
      const neighbours = await withCodes(answer, signal);
      clearTimeout(timer);
      show(asked, item, answer, neighbours);
    } catch (error) {
      if (!signal.aborted) fail("The search did not work.", error.message, again);
    } finally {
      clearTimeout(timer);
    }
  }

  /** The neighbours with their codes: the stored ones, so only where the model that serves found them. */
  async function withCodes(answer, signal) {
    const neighbours = answer.results[0];
    if (neighbours.length === 0 || answer.sample !== null) return neighbours;
    const { items } = await api.itemsById(
      neighbours.map(({ id }) => id),
      { signal },
    );
    const query = bitsOf(answer.codes[0]);
    // A refresh between the two answers would mix the codes of two models: the distance tells.
    const agrees = ({ code }, i) =>
      code && bitsOf(code).filter((bit, j) => bit !== query[j]).length === neighbours[i].distance;
    return neighbours.map((each, i) => ({
      ...each,
      vector: items[i].vector,
      code: agrees(items[i], i) ? items[i].code : null,
    }));
  }

  function show(asked, item, answer, neighbours) {
    const n = page.status?.bits ?? answer.codes[0].length * 4;
    const bits = bitsOf(answer.codes[0], n);
    const label = item?.label ?? null;
    const agreement = label === null ? null : agreementOf(neighbours, label);
    announce(
      `${counted(neighbours.length, "neighbour")} found by model ${answer.model}. ${agreement ?? ""}`,
    );
    results.replaceChildren(
      el(
        "div",
        { class: "query" },
        item ? thumbnail(item) : null,
        el(
          "div",
          { class: "query-text" },
          el("h2", {}, item ? `Item ${plain(item.id)}` : asked.name),
          el(
            "p",
            {},
            item
              ? el("span", { class: "tag" }, labelOf(item))
              : `Row ${asked.row + 1} of ${asked.rows.length}`,
            agreement ? ` ${agreement}` : null,
          ),
          item ? facts(item.metadata) : null,
          asked.rows?.length > 1 ? rowButtons(asked) : null,
        ),
        el(
          "div",
          { class: "query-code" },
          strip(bits),
          el("code", { class: "hex" }, answer.codes[0]),
        ),
      ),
      el("h2", { class: "results-title" }, `Nearest by model ${answer.model}`),
      neighbours.length
        ? el("p", { class: "quiet" }, explanation(answer, neighbours))
        : notice("empty", "There is nothing to find yet.", "Add items, and they show up here."),
      el(
        "ol",
        { class: "neighbours" },
        neighbours.map((each) => neighbour(each, label, bits)),
      ),
    );
    if (matchMedia("(max-width: 55rem)").matches) results.scrollIntoView({ block: "start" });
  }

  function rowButtons(asked) {
    const step = (by) => () => {
      query = { ...asked, row: asked.row + by };
      run();
    };
    return el(
      "div",
      { class: "row" },
      el(
        "button",
        { type: "button", class: "small", disabled: asked.row === 0, onclick: step(-1) },
        "Row before",
      ),
      el(
        "button",
        {
          type: "button",
          class: "small",
          disabled: asked.row === asked.rows.length - 1,
          onclick: step(1),
        },
        "Next row",
      ),
    );
  }

  function explanation(answer, neighbours) {
    if (answer.sample !== null)
      return `Tried on a sample of ${counted(answer.sample, "item")}. Codes are stored of the model that serves, so those of the neighbours are not shown.`;
    return neighbours.some(({ code }) => code)
      ? "Bits that differ from the query stand out."
      : "The model changed while this was found. Search again to see the codes.";
  }

  function neighbour(each, label, bits) {
    const differs = agree(label, each.label) === false;
    return el(
      "li",
      { class: differs ? "other" : null },
      el(
        "a",
        {
          class: "neighbour-link",
          href: page.address("search", { id: each.id }),
          "aria-label": `Search with item ${plain(each.id)}`,
        },
        thumbnail(each),
      ),
      el(
        "div",
        { class: "neighbour-text" },
        el(
          "p",
          {},
          el("span", { class: "tag" }, labelOf(each)),
          differs ? el("span", { class: "unlike" }, "other label") : null,
          el("span", { class: "quiet" }, ` item ${plain(each.id)}`),
        ),
        facts(each.metadata),
      ),
      el(
        "p",
        { class: "distance" },
        el("b", {}, each.distance),
        el("span", {}, each.distance === 1 ? " bit" : " bits"),
      ),
      each.code ? strip(bitsOf(each.code, bits.length), bits) : null,
    );
  }

  async function loadModels() {
    const models = await api.models();
    const chosen = model.select.value;
    const old = models.filter(({ number }) => number !== page.status.serving.model);
    model.select.replaceChildren(
      el("option", { value: "" }, `${page.status.serving.model} (serves)`),
      ...old.reverse().map(({ number }) => el("option", { value: number }, number)),
    );
    if ([...model.select.options].some(({ value }) => value === chosen))
      model.select.value = chosen;
  }

  function introduce(status) {
    if (status === null || status.serving.model === 0) results.replaceChildren(emptiness(status));
    else if (query === null) {
      results.replaceChildren(
        notice(
          "empty",
          "Nothing chosen yet.",
          "Choose one of the items, or drop a file of vectors anywhere on this view.",
        ),
      );
    }
  }

  return {
    element,
    show(parameters, moved) {
      const isOther = parameters.id !== undefined && parameters.id !== query?.id;
      if (isOther) {
        query = { id: parameters.id };
        markCurrent();
      }
      if (query === null) introduce(page.status);
      else if (isOther || moved) run(); // who comes back sees what is there by now
      if (page.status) this.told(page.status);
    },
    hide() {
      running?.abort();
    },
    told(status) {
      // While a stream goes on the grid stays as it is, except at the start: items that jump away
      // under the pointer cannot be chosen.
      if (known.items <= 0 || (known.items < SHOWN && status.items !== known.items)) {
        if (status.items !== known.items) grid.load();
      }
      const isNew = status.serving.model !== known.model;
      if (query === null && (isNew || (status.serving.model === 0 && status.items !== known.items)))
        introduce(status);
      if (isNew && status.serving.model) loadModels().catch(() => {}); // asked again with the next model
      known = { items: status.items, model: status.serving.model };
    },
  };
}
