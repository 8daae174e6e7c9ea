// Items: their pictures, their facts, and the grid in which they are chosen.

import { api } from "./api.js";
import { el, notice, waiting } from "./elements.js";
import { pictureOf } from "./pictures.js";
import { count, plain } from "./format.js";

/** A square with the item's picture; its label where it has none. */
export function thumbnail(item) {
  const square = el("span", { class: "thumb", "aria-hidden": "true" });
  const word = () =>
    el("span", { class: "thumb-word" }, item.label === null ? "?" : words(item.label));
  if (item.metadata?.image) pictureOf(item).then((canvas) => square.append(canvas ?? word()));
  else square.append(word());
  return square;
}

/** A label, or several. */
const words = (label) => [label].flat().map(plain).join(", ");

export const labelOf = (item) => (item.label === null ? "no label" : words(item.label));

/** Whether two labels are equal, or two lists share one; null where an item has none. */
export function agree(first, second) {
  if (first === null || second === null) return null;
  return [first].flat().some((label) => [second].flat().includes(label));
}

/** How many neighbours have a query's label; those without one say nothing, either way. */
export function agreementOf(neighbours, label) {
  const labelled = neighbours.filter((each) => each.label !== null);
  const same = labelled.filter((each) => agree(each.label, label)).length;
  const all = labelled.length === neighbours.length ? "" : "labelled ";
  const its = Array.isArray(label) && label.length > 1 ? "one of its labels" : "its label";
  return `${same} of ${labelled.length} ${all}neighbours have ${its}.`;
}

/** Labels as chips; of several, those that a query does not have stand back. */
export function chips(item, query = null) {
  if (!Array.isArray(item.label)) return el("span", { class: "tag" }, labelOf(item));
  return item.label.map((label) =>
    el("span", { class: agree(label, query) === false ? "tag apart" : "tag" }, plain(label)),
  );
}

/** The title that an item's metadata have: text to read in place of a picture. */
export function titleOf(item) {
  const { image, title } = item.metadata ?? {};
  return !image && typeof title === "string" && title.trim() ? title : null;
}

/** What is known of an item besides its label, as pairs. */
export function facts(item) {
  const shown = titleOf(item) === null ? ["image"] : ["image", "title"]; // elsewhere
  const pairs = Object.entries(item.metadata ?? {}).filter(([name]) => !shown.includes(name));
  if (pairs.length === 0) return null;
  return el(
    "dl",
    { class: "facts" },
    pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, plain(value)))),
  );
}

/** A grid of items, the newest first, with buttons to older and newer ones. */
export function itemGrid({ size, cell }) {
  const list = el("ul", { class: "grid" });
  const place = el("span", { class: "quiet", "aria-live": "polite" });
  const newer = el(
    "button",
    { type: "button", class: "small", onclick: () => turn(-size) },
    "Newer",
  );
  const older = el(
    "button",
    { type: "button", class: "small", onclick: () => turn(size) },
    "Older",
  );
  const pager = el("div", { class: "row pager" }, newer, older, place);
  const element = el("div", {}, list, pager);
  let skipped = 0; // items newer than those shown
  let shown = [];

  function turn(by) {
    skipped = Math.max(0, skipped + by);
    load();
  }

  async function load() {
    if (shown.length === 0)
      list.replaceChildren(el("li", { class: "wide" }, waiting("Loading items")));
    try {
      const { total, items } = await api.newest(skipped, size);
      shown = items;
      list.classList.toggle("titles", shown.some(titleOf));
      list.replaceChildren(...shown.map((item) => el("li", {}, cell(item))));
      place.textContent = shown.length
        ? `${count(skipped + 1)} to ${count(skipped + shown.length)} of ${count(total)}`
        : "";
      newer.textContent = skipped ? "Newer" : "Newest";
      pager.hidden = total === 0;
      older.disabled = skipped + size >= total;
    } catch (error) {
      shown = [];
      list.replaceChildren(
        el(
          "li",
          { class: "wide" },
          notice("problem", "The items could not be loaded.", error.message, load),
        ),
      );
    }
    return shown;
  }

  return {
    element,
    load,
    get items() {
      return shown;
    },
  };
}
