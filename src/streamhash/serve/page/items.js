// Items: their pictures, their facts, and the grid in which they are chosen.

import { api } from "./api.js";
import { el, notice, waiting } from "./elements.js";
import { count, plain } from "./words.js";

const KEPT = 500; // pictures kept in memory
const pictures = new Map(); // id -> promise of a picture, or of null where there is none

// A picture is fetched rather than named in an <img>: requests of images carry no token. It is drawn
// on a canvas, as the page's policy allows no addresses but the service's own.
function picture(id) {
  if (!pictures.has(id)) {
    if (pictures.size >= KEPT) pictures.delete(pictures.keys().next().value);
    const loaded = api.image(id).then(createImageBitmap);
    pictures.set(id, loaded.catch(() => null));
  }
  return pictures.get(id);
}

/** A square with the item's picture; its label where it has none. */
export function thumbnail(item) {
  const square = el("span", { class: "thumb", "aria-hidden": "true" });
  const words = () => square.append(el("span", { class: "thumb-word" }, item.label === null ? "?" : plain(item.label)));
  // An item's metadata say if its vector is a picture; asking for one that is not there is an error.
  if (!item.metadata?.image) {
    words();
    return square;
  }
  picture(item.id).then((bitmap) => {
    if (bitmap === null) return words();
    const small = bitmap.width < 64;
    const canvas = el("canvas", { width: bitmap.width, height: bitmap.height, class: small ? "pixels" : null });
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
    square.append(canvas);
  });
  return square;
}

export const labelOf = (item) => (item.label === null ? "no label" : plain(item.label));

/** What is known of an item besides its label, as pairs. */
export function facts(metadata) {
  const pairs = Object.entries(metadata ?? {}).filter(([name]) => name !== "image"); // it is shown
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
  const newer = el("button", { type: "button", class: "small", onclick: () => turn(-size) }, "Newer");
  const older = el("button", { type: "button", class: "small", onclick: () => turn(size) }, "Older");
  const pager = el("div", { class: "row pager" }, newer, older, place);
  const element = el("div", {}, list, pager);
  let skipped = 0; // items newer than those shown
  let shown = [];

  function turn(by) {
    skipped = Math.max(0, skipped + by);
    load();
  }

  async function load() {
    if (shown.length === 0) list.replaceChildren(el("li", { class: "wide" }, waiting("Loading items")));
    try {
      const { total } = await api.items(0, 1);
      skipped = Math.max(0, Math.min(skipped, total - 1));
      const end = total - skipped;
      const start = Math.max(0, end - size);
      shown = total === 0 ? [] : (await api.items(start, end - start)).items.reverse();
      list.replaceChildren(...shown.map((item) => el("li", {}, cell(item))));
      place.textContent = total ? `${count(end)} to ${count(start + 1)} of ${count(total)}` : "";
      pager.hidden = total <= size;
      newer.disabled = skipped === 0;
      older.disabled = start === 0;
    } catch (error) {
      shown = [];
      list.replaceChildren(el("li", { class: "wide" }, notice("problem", "The items could not be loaded.", error.message, load)));
    }
    return shown;
  }

  return { element, load, get items() { return shown; }, get isNewest() { return skipped === 0; } };
}
