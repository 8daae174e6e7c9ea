// Search: choose an item or drop a file of vectors; see its code, and its neighbours beside it.

import { api } from "./api.js";
import { bitsOf, strip } from "./bits.js";
import { announce, choice, el, level, notice, waiting } from "./elements.js";
import { emptiness } from "./empty.js";
import { filterLine, filterProblem } from "./filter.js";
import {
  agree,
  agreementOf,
  cell,
  chips,
  facts,
  hasPicture,
  itemGrid,
  nameOf,
  thumbnail,
  titleOf,
  toldOf,
} from "./items.js";
import { SCORINGS } from "./scoring.js";
import { judgements, thumbs } from "./thumbs.js";
import { FileError, readVectors } from "./vectors.js";
import { counted, percent, plain } from "./format.js";

const SHOWN = 24; // items in the grid
const MEND = "Change the filter, or clear it to search all items.";
const USUAL = { k: 10, model: "", scoring: "code", least: "", where: "" }; // left out of addresses
const LEAST = [50, 70, 80, 90, 95, 99]; // per cent that a neighbour can be asked to be likely by

export function searchView(page) {
  const results = el("section", { class: "results", "aria-label": "Results" });
  const grid = itemGrid({ size: SHOWN, cell: itemButton });
  const k = choice(
    "Neighbours",
    [5, 10, 20, 50].map((n) => [n, n]),
    () => go(),
  );
  k.select.value = USUAL.k;
  const model = choice("Model", [["", "the one that serves"]], () => go());
  const [byCode, byReal, ...rescored] = SCORINGS.map(({ name, text }) => [name, text]);
  const scoring = choice(
    "Scored by",
    [byCode, byReal, { group: "the nearest by codes, then by", options: rescored }],
    () => go(),
  );
  const least = choice(
    "At least as likely",
    [["", "any"], ...LEAST.map((n) => [String(n), `${n} %`])],
    () => go(),
  );
  const kept = judgements();
  const filter = filterLine(() => go());
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
      el("div", { class: "row controls" }, scoring.element, least.element),
      filter.element,
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
  let answered = null; // how the last search was to go
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

  /** How the search is to go, as the controls say: all that is not as usual. */
  function state() {
    const all = {
      k: Number(k.select.value),
      model: model.select.value,
      scoring: scoring.select.value,
      least: least.select.value && Number(least.select.value),
      where: filter.value,
    };
    return Object.fromEntries(Object.entries(all).filter(([name, value]) => value !== USUAL[name]));
  }

  /** Set the controls to what an address says. */
  function set(parameters) {
    for (const [name, { select }] of Object.entries({ k, model, scoring, least })) {
      const wanted = String(parameters[name] ?? USUAL[name]);
      select.value = wanted;
      // A model may be asked for before the list of them has come.
      if (select.selectedIndex < 0 && name === "model" && /^\d+$/.test(wanted))
        select.append(el("option", { value: wanted, selected: true }, wanted));
      if (select.selectedIndex < 0) select.value = USUAL[name];
    }
    filter.value = typeof parameters.where === "string" ? parameters.where.trim() : "";
    scoring.select.disabled = least.select.disabled = filter.disabled = model.select.value !== "";
  }

  const addressOf = (id) => page.address("search", { ...(id !== undefined && { id }), ...state() });

  /** Search as the controls say, and have the address say it too. */
  function go() {
    if (JSON.stringify(state()) === answered) again();
    else page.go("search", { ...(query?.id !== undefined && { id: query.id }), ...state() });
  }

  function itemButton(item) {
    return cell(item, {
      href: addressOf(item.id),
      "aria-current": query?.id === item.id ? "true" : null,
      "aria-label": `Search with item ${toldOf(item)}`,
    });
  }

  async function byId(event) {
    event.preventDefault();
    const text = idInput.value.trim();
    if (!text) return;
    // The ids of a collection are all whole numbers or all strings.
    const numbers = page.status?.ids === "whole numbers";
    if (numbers && !/^\d+$/.test(text)) {
      fail("There is no such item.", "The ids of this collection are whole numbers.");
    } else page.go("search", { id: numbers ? Number(text) : text, ...state() });
  }

  async function take(file) {
    if (!file) return;
    fileInput.value = "";
    try {
      const rows = await readVectors(file, page.status?.features ?? null);
      query = { rows, row: 0, name: file.name };
      history.replaceState(null, "", addressOf());
      markGrid();
      run();
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      fail("This file cannot be searched with.", error.message);
    }
  }

  const again = () => query && run();

  function fail(title, text, retry = null) {
    running?.abort(); // what was asked before must not take its place
    results.replaceChildren(notice("problem", title, text, retry));
  }

  /** Have the grid lead on with the same filter and scoring, and mark the item that is asked with. */
  function markGrid() {
    for (const link of grid.element.querySelectorAll(".cell")) {
      const id = JSON.parse(link.dataset.id);
      link.setAttribute("href", addressOf(id));
      if (id === query?.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  async function run() {
    running?.abort();
    running = new AbortController();
    const { signal } = running;
    const asked = query;
    const how = SCORINGS.find(({ name }) => name === scoring.select.value);
    const isOlder = model.select.value !== ""; // tried on a sample, by codes alone
    const where = filter.value;
    answered = JSON.stringify(state());
    filter.tell("");
    const timer = setTimeout(() => results.replaceChildren(waiting("Searching")), 200);
    try {
      const byItem = asked.id !== undefined;
      const body = {
        k: Number(k.select.value),
        ...(isOlder
          ? { model: Number(model.select.value) }
          : {
              ...how.body,
              ...(where && { where }),
              ...(least.select.value && { min_probability: Number(least.select.value) / 100 }),
            }),
        ...(byItem ? { ids: [asked.id] } : { vectors: [asked.rows[asked.row]] }),
      };
      const [item, answer] = await Promise.all([
        byItem ? api.item(asked.id, { signal }) : null,
        api.search(body, { signal }),
      ]);
      const neighbours = await withCodes(answer, signal);
      clearTimeout(timer);
      const shown = {
        ...asked,
        how: isOlder ? SCORINGS[0] : how,
        where: body.where,
        least: body.min_probability,
      };
      show(shown, item, answer, neighbours);
    } catch (error) {
      if (signal.aborted) return;
      const problem = filterProblem(error);
      if (problem === null) fail("The search did not work.", error.message, again);
      else {
        filter.tell(problem);
        results.replaceChildren(notice("empty", "Nothing was searched.", MEND));
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** The neighbours with their codes: the stored ones, so only where the model that serves found them. */
  async function withCodes(answer, signal) {
    const neighbours = answer.results[0];
    if (neighbours.length === 0 || answer.sample !== null || answer.model === 0) return neighbours;
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
    const title = item && titleOf(item);
    announce(
      `${counted(neighbours.length, "neighbour")} found by model ${answer.model}. ${agreement ?? ""}`,
    );
    results.replaceChildren(
      el(
        "div",
        { class: "query" },
        item && hasPicture(item) ? thumbnail(item) : null,
        el(
          "div",
          { class: "query-text" },
          el("h2", {}, item ? (title ?? `Item ${plain(item.id)}`) : asked.name),
          asked.isExample
            ? el("p", { class: "quiet" }, "An example: the newest item. Choose any other.")
            : null,
          el(
            "p",
            { class: "chips" },
            item ? chips(item) : `Row ${asked.row + 1} of ${asked.rows.length}`,
            title === null || !item ? null : el("span", { class: "quiet" }, `item ${plain(item.id)}`),
            agreement ? ` ${agreement}` : null,
          ),
          item ? facts(item) : null,
          asked.rows?.length > 1 ? rowButtons(asked) : null,
        ),
        answer.model === 0
          ? null
          : el(
              "div",
              { class: "query-code" },
              strip(bits),
              el("code", { class: "hex" }, answer.codes[0]),
            ),
      ),
      el(
        "h2",
        { class: "results-title" },
        answer.model === 0 ? "Nearest by their vectors" : `Nearest by model ${answer.model}`,
      ),
      neighbours.length
        ? el("p", { class: "quiet" }, explanation(asked, answer, neighbours))
        : nothingFound(asked),
      el(
        "ol",
        { class: "neighbours" },
        neighbours.map((each) => neighbour(each, label, bits, asked)),
      ),
    );
    if (matchMedia("(max-width: 55rem)").matches) results.scrollIntoView({ block: "start" });
  }

  function nothingFound({ where, least }) {
    if (least !== undefined)
      return notice(
        "empty",
        "No item is as likely as that.",
        "Ask for less, or for any, and the nearest show up here.",
      );
    if (where) return notice("empty", "No item matches the filter.", MEND);
    return notice("empty", "There is nothing to find yet.", "Add items, and they show up here.");
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

  function explanation({ how, where, least }, answer, neighbours) {
    if (answer.model === 0)
      return `No model has been learned yet, so vectors are compared as they are. ${where ? `Only items where ${where}.` : ""}`;
    if (answer.sample !== null)
      return `Tried on a sample of ${counted(answer.sample, "item")}, by codes and without a filter. Codes are stored of the model that serves, so those of the neighbours are not shown.`;
    return [
      where ? [el("span", {}, "Only items where "), el("code", {}, where), ". "] : null,
      least === undefined ? null : `Only neighbours that are at least ${percent(least)} likely. `,
      how.told ? `${how.told} ` : null,
      neighbours.some(({ code }) => code)
        ? "Bits that differ from the query stand out."
        : "The model changed while this was found. Search again to see the codes.",
      neighbours.some(({ probability }) => Number.isFinite(probability))
        ? " The percentage tells how likely a neighbour has the query's label."
        : null,
    ];
  }

  /** Thumbs, where judgements can be stored and are learned from. */
  function judging(asked, each) {
    const { learner } = page.status ?? {};
    if (!page.writable || !learner?.learns_pairs) return null;
    const query = asked.id !== undefined ? { id: asked.id } : { vector: asked.rows[asked.row] };
    return thumbs(query, each, kept);
  }

  function neighbour(each, label, bits, asked) {
    const differs = agree(label, each.label) === false;
    const picture = hasPicture(each);
    const title = titleOf(each);
    const link = (content) =>
      el(
        "a",
        {
          class: "neighbour-link",
          href: addressOf(each.id),
          "aria-label": `Search with item ${[plain(each.id), title].filter(Boolean).join(", ")}`,
        },
        content,
      );
    return el(
      "li",
      { class: [differs ? "other" : "", picture ? "" : "titled"].join(" ").trim() || null },
      picture ? link(thumbnail(each)) : null,
      el(
        "div",
        { class: "neighbour-text" },
        picture ? (title === null ? null : el("p", { class: "neighbour-title" }, title)) : link(nameOf(each)),
        el(
          "p",
          { class: "chips" },
          chips(each, label),
          differs ? el("span", { class: "unlike" }, "other label") : null,
          picture || title !== null
            ? el("span", { class: "quiet" }, ` item ${plain(each.id)}`)
            : null,
        ),
        facts(each),
        judging(asked, each),
      ),
      measures(each, asked.how),
      each.code ? strip(bitsOf(each.code, bits.length), bits) : null,
    );
  }

  /** What a neighbour was put in order by, the bits that differ, and its probability. */
  function measures({ score, distance, probability }, { unit, format }) {
    return el(
      "div",
      { class: "measures" },
      unit ? el("p", { class: "score" }, el("b", {}, format(score)), ` ${unit}`) : null,
      el(
        "p",
        { class: "distance" },
        // Before there is a model, vectors are compared as they are.
        el("b", {}, Number.isInteger(distance) ? distance : distance.toFixed(3)),
        el("span", {}, !Number.isInteger(distance) ? " apart" : distance === 1 ? " bit" : " bits"),
      ),
      Number.isFinite(probability)
        ? el(
            "p",
            { class: "probability", title: "How likely it has the query's label" },
            level(probability),
            percent(probability),
          )
        : null,
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
    if (status === null || status.items === 0) results.replaceChildren(emptiness(status));
    else if (query === null) example();
  }

  /** Begin with the newest item: what a search tells is best seen. */
  async function example() {
    results.replaceChildren(waiting("Choosing an example"));
    try {
      const { items } = await api.newest(0, 1);
      if (query !== null || items.length === 0) return;
      query = { id: items[0].id, isExample: true };
      if (element.isConnected) history.replaceState(null, "", addressOf(query.id));
      markGrid();
      run();
    } catch (error) {
      fail("The example did not come.", error.message, () => introduce(page.status));
    }
  }

  return {
    element,
    show(parameters, moved) {
      const isBack = moved && Object.keys(parameters).length === 0; // all is as it was
      const isOther = parameters.id !== undefined && parameters.id !== query?.id;
      if (!isBack) set(parameters);
      else if (query?.id !== undefined || Object.keys(state()).length)
        history.replaceState(null, "", addressOf(query?.id));
      if (isOther) query = { id: parameters.id }; // else a click on the example would be nothing new
      markGrid();
      if (query === null) introduce(page.status);
      else if (isOther || moved || JSON.stringify(state()) !== answered) run(); // by what is there now
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
      if (query === null && (isNew || status.items !== known.items)) introduce(status);
      else if (isNew && query?.isExample && known.items >= 0) run(); // by the model that has come
      if (isNew && status.serving.model) loadModels().catch(() => {}); // asked again with the next model
      filter.learn(status.fields ?? {});
      known = { items: status.items, model: status.serving.model };
    },
  };
}
