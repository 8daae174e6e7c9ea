// Items: all of them as a table, by label, field or filter; opened, changed, added, deleted, exported.

import { api } from "./api.js";
import { choice, el, notice, waiting } from "./elements.js";
import { addPanel } from "./add.js";
import { displayPanel } from "./display.js";
import { filterLine, filterProblem } from "./filter.js";
import { chips, hasPicture, pairsOf, thumbnail, titleOf } from "./items.js";
import { itemPanel } from "./item.js";
import { count, counted, plain } from "./format.js";

const SIZES = [25, 50, 100, 250];
const USUAL = { where: "", sort: "", descending: false, offset: 0, limit: 50, item: undefined };
const LABELS = 200; // that are listed
const COLUMNS = 8; // of metadata

export function itemsView(page) {
  const filter = filterLine((where) => go({ where, offset: 0 }));
  const labels = el("ul", { class: "labels" });
  const body = el("div", { class: "browse-table" });
  const place = el("p", { class: "quiet", "aria-live": "polite" });
  const size = choice("Rows", SIZES.map((n) => [n, n]), (n) => go({ limit: Number(n), offset: 0 }));
  const order = choice("Order", [["", "newest first"]], (name) =>
    go({ sort: name.replace(/^-/, ""), descending: name.startsWith("-"), offset: 0 }),
  );
  const earlier = button("Back", () => go({ offset: Math.max(0, state.offset - state.limit) }));
  const later = button("On", () => go({ offset: state.offset + state.limit }));
  const told = el("div", { role: "status" });
  const adding = addPanel(page, changed);
  const showing = displayPanel(page, () => page.ask().then(load));
  const opened = itemPanel(page, {
    closed: () => go({ item: undefined }),
    changed: (words) => changed(words),
  });
  const format = choice("Export as", [["jsonl", "JSON lines"], ["csv", "CSV"], ["parquet", "Parquet"]], () => {});
  const exporting = button("Export", save);
  const element = el(
    "div",
    { class: "view browse-view" },
    el(
      "section",
      { class: "browse-side", "aria-label": "Labels" },
      el("h1", { tabindex: "-1" }, "Items"),
      el("p", { class: "lead about" }),
      el("h2", {}, "Labels"),
      labels,
    ),
    el(
      "section",
      { class: "browse-main", "aria-label": "List" },
      filter.element,
      el(
        "div",
        { class: "row browse-tools" },
        order.element,
        size.element,
        format.element,
        exporting,
        adding.button,
        showing.button,
      ),
      adding.element,
      showing.element,
      told,
      body,
      el("div", { class: "row pager" }, earlier, later, place),
    ),
    opened.element,
  );
  let state = { ...USUAL };
  let running = null;
  let seen = { items: -1, labelled: -1 };

  function button(text, onclick) {
    return el("button", { type: "button", class: "small", onclick }, text);
  }

  /** Change what is shown, and have the address say it. */
  function go(changes) {
    const next = { ...state, ...changes };
    const other = Object.entries(next).filter(([name, value]) => value !== USUAL[name]);
    page.go("items", Object.fromEntries(other));
  }

  function changed(words, more = "") {
    told.replaceChildren(notice("done", words, more));
    page.ask().catch(() => {});
    load();
    loadLabels();
  }

  async function load() {
    running?.abort();
    running = new AbortController();
    const { signal } = running;
    const { where, sort, descending, offset, limit } = state;
    filter.tell("");
    const timer = setTimeout(() => body.replaceChildren(waiting("Loading items")), 300);
    try {
      const how = sort ? { sort, descending } : { newest: true };
      const { total, items } = await api.list({ where, offset, limit, ...how }, { signal });
      clearTimeout(timer);
      show(total, items);
    } catch (error) {
      if (signal.aborted) return;
      const problem = filterProblem(error);
      if (problem !== null) filter.tell(problem);
      const words = problem === null ? error.message : "Change the filter, or clear it.";
      body.replaceChildren(notice("problem", "The items could not be listed.", words, load));
    } finally {
      clearTimeout(timer);
    }
  }

  async function loadLabels() {
    try {
      const { labels: found } = await api.labels();
      const all = found.reduce((sum, { items }) => sum + items, 0);
      labels.replaceChildren(
        labelRow("All items", page.status?.items ?? all, ""),
        ...found.slice(0, LABELS).map(({ label, items }) =>
          labelRow(label === null ? "no label" : plain(label), items, condition(label)),
        ),
        ...(found.length > LABELS
          ? [el("li", { class: "quiet" }, `and ${count(found.length - LABELS)} more`)]
          : []),
      );
    } catch (error) {
      labels.replaceChildren(el("li", { class: "quiet" }, error.message));
    }
  }

  /** The filter that holds for the items of a label. */
  function condition(label) {
    if (label === null) return "label is null";
    const value = typeof label === "number" ? String(label) : `'${label.replaceAll("'", "''")}'`;
    return page.status?.labels === "several" ? `${value} in labels` : `label = ${value}`;
  }

  function labelRow(word, n, where) {
    return el(
      "li",
      {},
      el(
        "a",
        {
          href: page.address("items", where ? { where } : {}),
          "aria-current": state.where === where ? "true" : null,
        },
        el("span", { class: "label-word" }, word),
        el("span", { class: "label-count" }, count(n)),
      ),
    );
  }

  function show(total, items) {
    const { offset, limit } = state;
    place.textContent = items.length
      ? `${count(offset + 1)} to ${count(offset + items.length)} of ${counted(total, "item")}`
      : "";
    earlier.disabled = offset === 0;
    later.disabled = offset + limit >= total;
    exporting.disabled = total === 0;
    if (items.length === 0) {
      const words = state.where
        ? notice("empty", "No item matches the filter.", "Change it, or clear it to see all items.")
        : notice("empty", "There are no items here.", "Add some by the form, or drop a file.");
      body.replaceChildren(words);
      return;
    }
    const names = [...new Set(items.flatMap((item) => pairsOf(item).map(([name]) => name)))];
    const columns = names.slice(0, COLUMNS);
    const pictures = items.some(hasPicture);
    const titled = items.some((item) => titleOf(item) !== null);
    body.replaceChildren(
      el(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "Items" },
        el(
          "table",
          { class: "items-table" },
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              pictures ? el("th", {}, el("span", { class: "unseen" }, "Picture")) : null,
              titled ? el("th", { scope: "col" }, "Title") : null,
              head("id", "Id"),
              head("label", "Label"),
              columns.map((name) => head(name, name, items.every((item) => isNumber(item, name)))),
            ),
          ),
          el(
            "tbody",
            {},
            items.map((item) => row(item, columns, pictures, titled)),
          ),
        ),
      ),
    );
  }

  /** A column's name, which puts the list in its order; once more turns it round. */
  function head(name, text, numbers = false) {
    const field = /^[\p{L}_][\p{L}\p{N}_]*$/u.test(name) ? name : `"${name}"`;
    const isSorted = state.sort === field;
    const sorted = isSorted ? (state.descending ? "descending" : "ascending") : "none";
    const turn = () => go({ sort: field, descending: isSorted && !state.descending, offset: 0 });
    return el(
      "th",
      { scope: "col", class: numbers ? "number" : null, "aria-sort": sorted },
      el(
        "button",
        { type: "button", class: "sort", onclick: turn },
        text,
        el(
          "span",
          { class: "sort-sign", "aria-hidden": "true" },
          isSorted ? (state.descending ? "↓" : "↑") : "",
        ),
      ),
    );
  }

  const isNumber = (item, name) => typeof (item.metadata?.[name] ?? 0) === "number";

  function row(item, columns, pictures, titled) {
    const known = Object.fromEntries(pairsOf(item));
    const link = (content) =>
      el(
        "a",
        { href: page.address("items", { ...shownState(), item: item.id }), "data-open": "" },
        content,
      );
    const title = titleOf(item);
    return el(
      "tr",
      {},
      pictures ? el("td", { class: "small-picture" }, hasPicture(item) ? thumbnail(item) : null) : null,
      titled ? el("td", { class: "title-cell" }, title === null ? "" : link(title)) : null,
      el("td", { class: "id-cell" }, titled && title !== null ? plain(item.id) : link(plain(item.id))),
      el("td", {}, item.label === null ? el("span", { class: "quiet" }, "none") : chips(item)),
      columns.map((name) => {
        const value = known[name];
        const text = value === undefined || value === null ? "" : plain(value);
        return el("td", { class: typeof value === "number" ? "number" : null, title: text.length > 60 ? text : null }, text);
      }),
    );
  }

  function shownState() {
    return Object.fromEntries(Object.entries(state).filter(([name, value]) => value !== USUAL[name]));
  }

  async function save() {
    told.replaceChildren(waiting("Writing the file"));
    try {
      const kind = format.select.value;
      const content = await api.exported({ format: kind, where: state.where });
      const url = URL.createObjectURL(content);
      const link = el("a", { href: url, download: `${page.name}.${kind}` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
      told.replaceChildren(notice("done", `${page.name}.${kind} is written.`));
    } catch (error) {
      told.replaceChildren(notice("problem", "Nothing was exported.", error.message));
    }
  }

  function controls() {
    filter.value = state.where;
    size.select.value = state.limit;
    const names = ["id", "label", ...Object.keys(page.status?.fields ?? {})];
    const options = names.flatMap((name) => [
      [name, `${name}, rising`],
      [`-${name}`, `${name}, falling`],
    ]);
    order.select.replaceChildren(
      ...[["", "newest first"], ...options].map(([value, text]) => el("option", { value }, text)),
    );
    order.select.value = state.sort ? (state.descending ? `-${state.sort}` : state.sort) : "";
    adding.button.hidden = showing.button.hidden = !page.writable;
    element.querySelector(".about").textContent = page.status?.display?.about ?? "";
  }

  return {
    element,
    show(parameters, moved) {
      const text = (value) => (typeof value === "string" ? value : "");
      const next = {
        where: text(parameters.where).trim(),
        sort: text(parameters.sort),
        descending: parameters.descending === true,
        offset: Number.isInteger(parameters.offset) ? Math.max(0, parameters.offset) : 0,
        limit: SIZES.includes(parameters.limit) ? parameters.limit : USUAL.limit,
        item: parameters.item,
      };
      const other = JSON.stringify({ ...next, item: 0 }) !== JSON.stringify({ ...state, item: 0 });
      state = next;
      controls();
      if (moved || other) {
        load();
        loadLabels();
      }
      opened.show(page.status?.ids === "strings" && state.item !== undefined ? String(state.item) : state.item);
    },
    hide() {
      running?.abort();
      opened.show(undefined);
    },
    told(status) {
      filter.learn(status.fields ?? {});
      adding.button.hidden = showing.button.hidden = !page.writable;
      const isFirst = seen.items <= 0 && status.items > 0;
      if (status.items !== seen.items || status.labelled !== seen.labelled) {
        loadLabels();
        if (isFirst) {
          controls();
          load();
        }
      }
      seen = { items: status.items, labelled: status.labelled };
    },
  };
}
