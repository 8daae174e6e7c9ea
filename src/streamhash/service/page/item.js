// One item, opened: all that is known of it; its label and metadata can be changed, and it can be deleted.

import { api } from "./api.js";
import { bitsOf, strip } from "./bits.js";
import { el, notice, waiting } from "./elements.js";
import { chips, hasPicture, thumbnail, titleOf } from "./items.js";
import { counted, plain } from "./format.js";

const NUMBERS = 24; // of a vector that are shown

/** A dialog; `closed` is called when it is left, `changed` when something was stored. */
export function itemPanel(page, { closed, changed }) {
  const content = el("div", {});
  const element = el(
    "dialog",
    { class: "item-dialog", "aria-label": "Item", onclose: () => id !== undefined && closed() },
    content,
  );
  let id; // of what is shown

  async function show(wanted) {
    if (wanted === undefined) {
      id = undefined;
      if (element.open) element.close();
      return;
    }
    if (wanted === id && element.open) return;
    id = wanted;
    content.replaceChildren(waiting("Loading the item"));
    if (!element.open) element.showModal();
    try {
      const item = await api.item(id);
      if (id === wanted) fill(item);
    } catch (error) {
      content.replaceChildren(
        notice("problem", "This item cannot be shown.", error.message),
        el("div", { class: "row" }, close()),
      );
    }
  }

  const close = () =>
    el("button", { type: "button", onclick: () => element.close() }, "Close");

  function fill(item) {
    const problem = el("div", {});
    const label = el("input", {
      name: "label",
      value: item.label === null ? "" : [item.label].flat().map(plain).join(", "),
      autocomplete: "off",
    });
    const metadata = el(
      "textarea",
      { name: "metadata", spellcheck: "false", rows: "8" },
      JSON.stringify(item.metadata ?? {}, null, 1),
    );

    async function store(event) {
      event.preventDefault();
      problem.replaceChildren();
      try {
        const after = JSON.parse(metadata.value);
        if (after === null || typeof after !== "object" || Array.isArray(after))
          throw new SyntaxError();
        // What is left out is taken away: null says so.
        const gone = Object.keys(item.metadata ?? {}).filter((name) => !Object.hasOwn(after, name));
        const changes = { ...after, ...Object.fromEntries(gone.map((name) => [name, null])) };
        const next = readLabel(label.value, page.status);
        const body = {
          ...(JSON.stringify(next) !== JSON.stringify(item.label) && { label: next }),
          ...(JSON.stringify(after) !== JSON.stringify(item.metadata ?? {}) && { metadata: changes }),
        };
        if (Object.keys(body).length) {
          await api.change(item.id, body);
          changed(`Item ${plain(item.id)} is changed.`);
        }
        element.close();
      } catch (error) {
        const words = error instanceof SyntaxError ? "The metadata are no JSON object." : error.message;
        problem.replaceChildren(notice("problem", "Nothing was changed.", words));
      }
    }

    async function remove() {
      if (!confirm(`Delete item ${plain(item.id)}?`)) return;
      try {
        await api.remove(item.id);
        changed(`Item ${plain(item.id)} is deleted.`);
        element.close();
      } catch (error) {
        problem.replaceChildren(notice("problem", "It was not deleted.", error.message));
      }
    }

    const title = titleOf(item);
    const shown = item.vector.slice(0, NUMBERS).map((value) => Number(value.toPrecision(4)));
    const more = item.vector.length > NUMBERS ? ", …" : "";
    content.replaceChildren(
      el(
        "form",
        { class: "item-form", onsubmit: store },
        el(
          "div",
          { class: "item-head" },
          hasPicture(item) ? thumbnail(item) : null,
          el(
            "div",
            {},
            el("h2", {}, title ?? `Item ${plain(item.id)}`),
            el(
              "p",
              { class: "chips" },
              chips(item),
              title === null ? null : el("span", { class: "quiet" }, `item ${plain(item.id)}`),
            ),
          ),
        ),
        item.code === null ? null : strip(bitsOf(item.code, page.status?.bits)),
        page.writable
          ? [
              el(
                "label",
                { class: "field" },
                el(
                  "span",
                  {},
                  page.status?.labels === "several"
                    ? "Labels, with commas; empty for none"
                    : "Label; empty for none",
                ),
                label,
              ),
              el("label", { class: "field" }, el("span", {}, "Metadata"), metadata),
            ]
          : facts(item.metadata),
        el(
          "details",
          {},
          el("summary", {}, `Vector of ${counted(item.vector.length, "number")}`),
          el("p", { class: "hex" }, `${shown.join(", ")}${more}`),
        ),
        problem,
        el(
          "div",
          { class: "row" },
          page.writable ? el("button", { type: "submit", class: "primary" }, "Save") : null,
          el(
            "a",
            { class: "button", href: page.address("search", { id: item.id }) },
            "Search with it",
          ),
          close(),
          page.writable
            ? el("button", { type: "button", class: "danger", onclick: remove }, "Delete")
            : null,
        ),
      ),
    );
  }

  return { element, show };
}

function facts(metadata) {
  const pairs = Object.entries(metadata ?? {});
  if (pairs.length === 0) return el("p", { class: "quiet" }, "It has no metadata.");
  return el(
    "dl",
    { class: "pairs" },
    pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, plain(value)))),
  );
}

/** A label as it was written: numbers are numbers, several have commas between them. */
export function readLabel(text, status) {
  const one = (word) => (/^-?\d{1,15}$/.test(word) ? Number(word) : word);
  const all = text
    .split(status?.labels === "several" ? "," : /\u0000/)
    .map((word) => word.trim())
    .filter(Boolean)
    .map(one);
  if (all.length === 0) return null;
  return status?.labels === "several" ? all : all[0];
}
