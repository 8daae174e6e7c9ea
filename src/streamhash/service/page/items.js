// Items: what they are called, their pictures and facts, and the list in which they are chosen.

import { api } from "./api.js";
import { el, notice, waiting } from "./elements.js";
import { pictureOf } from "./pictures.js";
import { count, plain } from "./format.js";

const FACTS = 8; // of an item that are shown, where nobody has said which
const LONGEST = 200; // characters of one

let display = { title: null, subtitle: [], image: null, guessed: true };

/** Show items as a collection's settings say. */
export function useDisplay(settings) {
  display = { title: null, subtitle: [], image: null, guessed: true, ...settings };
}

/** What an item's picture is made of: an address, or the size of a vector that is one; or null. */
function pictureField(item) {
  const value = item.metadata?.[display.image ?? "image"];
  if (typeof value === "string" && /^(https?:|data:image|[/])/.test(value)) return value;
  return typeof value?.width === "number" && typeof value?.height === "number" ? value : null;
}

export const hasPicture = (item) => pictureField(item) !== null;

/** A square with the item's picture. */
export function thumbnail(item) {
  const square = el("span", { class: "thumb", "aria-hidden": "true" });
  const value = pictureField(item);
  if (typeof value === "string")
    square.append(el("img", { src: value, alt: "", loading: "lazy", referrerpolicy: "no-referrer" }));
  else if (value !== null) {
    const drawn = pictureOf(item, value);
    drawn.then((canvas) => square.append(canvas ?? el("span", { class: "thumb-word" }, "?")));
  }
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

/** The title that an item's metadata have; null where there is none. */
export function titleOf(item) {
  const value = item.metadata?.[display.title];
  const text = typeof value === "string" || typeof value === "number" ? String(value).trim() : "";
  return text || null;
}

/** What an item is called by: its title, or else its id. */
export const nameOf = (item) => titleOf(item) ?? plain(item.id);

/** What listeners hear of an item: id, title and label. */
export const toldOf = (item) =>
  [plain(item.id), titleOf(item), labelOf(item)].filter(Boolean).join(", ");

/** What is known of an item besides title, picture and label, as pairs: what was said first. */
export function pairsOf(item) {
  const all = item.metadata ?? {};
  const elsewhere = [display.title, display.image ?? "image"];
  const first = display.subtitle.filter((name) => Object.hasOwn(all, name));
  const rest = display.guessed ? Object.keys(all).filter((name) => !first.includes(name)) : [];
  return [...first, ...rest]
    .filter((name) => !elsewhere.includes(name) && all[name] !== null)
    .filter((name) => plain(all[name]) !== labelOf(item)) // which stands there already
    .map((name) => [name, all[name]]);
}

/** These pairs as a line. */
export function facts(item) {
  const pairs = pairsOf(item).slice(0, FACTS);
  if (pairs.length === 0) return null;
  return el(
    "dl",
    { class: "facts" },
    pairs.map(([name, value]) =>
      el("div", {}, el("dt", {}, name), el("dd", {}, plain(value).slice(0, LONGEST))),
    ),
  );
}

/** An item to choose: its picture over its label, or its name before it. */
export function cell(item, attributes) {
  const picture = hasPicture(item);
  return el(
    "a",
    { class: picture ? "cell" : "cell line", "data-id": JSON.stringify(item.id), ...attributes },
    picture ? thumbnail(item) : el("span", { class: "cell-title" }, nameOf(item)),
    picture && titleOf(item) ? el("span", { class: "cell-word" }, titleOf(item)) : null,
    el("span", { class: "cell-word" }, labelOf(item)),
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
      list.classList.toggle("titles", !shown.every(hasPicture));
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
