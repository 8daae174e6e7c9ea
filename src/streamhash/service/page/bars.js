// One number a bit, as bars.

import { el, svg } from "./elements.js";
import { roundUp } from "./format.js";

/** One bar a bit; `middle` draws shares of ones from a half, where they are best. */
export function bars(values, { middle = false, told }) {
  const height = 64;
  const highest = middle ? 1 : roundUp(Math.max(...values));
  const h = (value) => height - (value / highest) * height;
  const from = middle ? h(0.5) : height;
  const d = values
    .map((value, i) => `M${i * 4} ${from}h3v${(h(value) - from).toFixed(2)}h-3z`)
    .join("");
  const drawing = svg(
    "svg",
    {
      viewBox: `0 0 ${values.length * 4 - 1} ${height}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": told,
    },
    svg("path", { class: "bar", d }),
    svg("path", {
      class: "base",
      d: `M0 ${from}H${values.length * 4}`,
      "vector-effect": "non-scaling-stroke",
    }),
  );
  const scale = [highest, highest / 2, 0].map((value) =>
    el("span", {}, `${Math.round(value * 1000) / 10} %`),
  );
  return el(
    "div",
    { class: "bars" },
    el("div", { class: "bar-scale", "aria-hidden": "true" }, scale),
    drawing,
  );
}
