// Pictures of items whose metadata say that their vector is one: {"width", "height"}.
//
// They are drawn on canvases: an <img> would send no token. Small ones are drawn from the vectors,
// a request for many; large ones come as files.

import { api } from "./api.js";

const SMALL = 4096; // pixels
const TOGETHER = 100; // vectors in a request
const KEPT = 1000; // vectors and files remembered
const known = new Map(); // id -> promise of what to draw, null where there is nothing
const wanted = new Map(); // id -> what to call with its vector

/** Forget what was drawn: another collection has other items of the same ids. */
export function forgetPictures() {
  known.clear();
  wanted.clear();
}

/** Draw an item's vector as a picture of this size on a new canvas; null where it cannot be. */
export async function pictureOf(item, { width, height }) {
  if (!width || !height) return null;
  if (item.vector) return fromVector(item.vector, width, height);
  if (!known.has(item.id)) {
    if (known.size >= KEPT) known.delete(known.keys().next().value);
    const isSmall = width * height <= SMALL;
    const source = isSmall ? vectorOf(item.id) : api.image(item.id).then(createImageBitmap);
    known.set(
      item.id,
      source.catch(() => null),
    );
  }
  const source = await known.get(item.id);
  if (source === null) return null;
  return Array.isArray(source) ? fromVector(source, width, height) : fromFile(source);
}

function vectorOf(id) {
  if (wanted.size === 0) setTimeout(fetchWanted, 0);
  return new Promise((resolve, reject) => wanted.set(id, { resolve, reject }));
}

async function fetchWanted() {
  const all = [...wanted];
  wanted.clear();
  for (let start = 0; start < all.length; start += TOGETHER) {
    const part = all.slice(start, start + TOGETHER);
    try {
      const { items } = await api.itemsById(part.map(([id]) => id));
      part.forEach(([, { resolve }], i) => resolve(items[i].vector));
    } catch (error) {
      part.forEach(([, { reject }]) => reject(error));
    }
  }
}

function blank(width, height) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  return [canvas, canvas.getContext("2d")];
}

/** In grey, the least value black and the greatest white, as the service's own pictures. */
function fromVector(vector, width, height) {
  if (vector.length !== width * height) return null;
  const [canvas, context] = blank(width, height);
  const pixels = context.createImageData(width, height);
  const low = vector.reduce((a, b) => Math.min(a, b));
  const range = vector.reduce((a, b) => Math.max(a, b)) - low || 1;
  vector.forEach((value, i) => {
    const grey = Math.round(((value - low) / range) * 255);
    pixels.data.set([grey, grey, grey, 255], i * 4);
  });
  context.putImageData(pixels, 0, 0);
  return canvas;
}

function fromFile(bitmap) {
  const [canvas, context] = blank(bitmap.width, bitmap.height);
  context.drawImage(bitmap, 0, 0);
  return canvas;
}
