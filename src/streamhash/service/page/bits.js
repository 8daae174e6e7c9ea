// Codes as strips of bits.

import { svg } from "./elements.js";

const PER_LINE = 128; // longer codes go on below
const HEIGHT = 20; // of a line, in units of which a bit is four wide

/** The bits of a code in hexadecimal, the first bit in the highest place of the first digit. */
export function bitsOf(hex, n) {
  const bits = [];
  for (const digit of hex) {
    const value = parseInt(digit, 16);
    bits.push((value >> 3) & 1, (value >> 2) & 1, (value >> 1) & 1, value & 1);
  }
  return bits.slice(0, n);
}

/**
 * Draw a code. Ones are dark, zeros pale. Beside another code, bits that differ stand out by colour
 * and by height, so that they are seen without colours too.
 */
export function strip(bits, other = null) {
  const shapes = { one: "", zero: "", "one differs": "", "zero differs": "" };
  const columns = Math.min(bits.length, PER_LINE);
  const lines = Math.ceil(bits.length / PER_LINE);
  const left = (i) => i * 4 + Math.floor(i / 8) * 2; // a little room between bytes
  let differing = 0;
  bits.forEach((bit, i) => {
    const differs = other !== null && other[i] !== bit;
    differing += differs;
    const inset = other === null || differs ? 0 : 5;
    const x = left(i % PER_LINE);
    const y = Math.floor(i / PER_LINE) * (HEIGHT + 4) + inset;
    const high = HEIGHT - 2 * inset;
    shapes[`${bit ? "one" : "zero"}${differs ? " differs" : ""}`] += `M${x} ${y}h3.2v${high}h-3.2z`;
  });
  const width = left(columns - 1) + 4;
  const height = lines * (HEIGHT + 4) - 4;
  const ones = bits.reduce((sum, bit) => sum + bit, 0);
  const told = `Code of ${bits.length} bits, ${ones} of them ones`;
  return svg(
    "svg",
    {
      class: `strip lines-${Math.min(lines, 8)}`,
      viewBox: `0 0 ${width} ${height}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": other === null ? told : `${told}; ${differing} differ from the query`,
    },
    Object.entries(shapes).map(([kind, d]) => (d ? svg("path", { class: kind, d }) : null)),
  );
}
