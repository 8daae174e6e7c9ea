// Reliability: how often answers were right, beside how likely they were said to be.

import { el, svg } from "./elements.js";
import { counted, percent, share } from "./format.js";

const SIZE = 200; // of the square, in units of the drawing
const LEFT = 46;
const TOP = 8;
const KINDS = [
  ["neighbours", "Neighbours", "neighbour", "has the query's label"],
  ["votes", "Votes of ten neighbours", "vote", "tells the query's label"],
];

/** Draw what was said of answers before they were learned; the diagonal is what is best. */
export function reliability(known) {
  return KINDS.map(([name, title, one, does]) => plot(known?.[name], title, one, does));
}

function plot(known, title, one, does) {
  const points = known?.points ?? [];
  if (points.length === 0)
    return el(
      "div",
      { class: "panel" },
      el("h3", {}, title),
      el("p", { class: "quiet" }, "Seen once labelled items have asked a model that serves."),
    );
  const total = points.reduce((sum, { count }) => sum + count, 0);
  const most = points.reduce((a, b) => (b.count > a.count ? b : a));
  const told = `Off by ${share(known.error)} in the mean, over ${counted(Math.round(total), `recent ${one}`)}. Of those said to be ${percent(most.predicted)} likely, ${percent(most.observed)} were right.`;
  return el(
    "div",
    { class: "panel" },
    el("h3", {}, title),
    drawing(points, most.count, `${title}: ${told}`),
    el("p", { class: "quiet" }, told),
    el("details", {}, el("summary", {}, "The same as a table"), table(points, one, does)),
  );
}

function drawing(points, most, told) {
  const x = (value) => LEFT + value * SIZE;
  const y = (value) => TOP + (1 - value) * SIZE;
  const ticks = [
    [0, "start"],
    [0.5, "middle"],
    [1, "end"],
  ];
  return svg(
    "svg",
    {
      class: "reliability",
      viewBox: `0 0 ${LEFT + SIZE + 12} ${TOP + SIZE + 40}`,
      role: "img",
      "aria-label": told,
    },
    ticks.map(([value, anchor]) => [
      svg("line", { class: "rule", x1: x(0), x2: x(1), y1: y(value), y2: y(value) }),
      svg("text", { x: x(0) - 6, y: y(value) + 4, "text-anchor": "end" }, `${value * 100} %`),
      svg("text", { x: x(value), y: y(0) + 18, "text-anchor": anchor }, `${value * 100} %`),
    ]),
    svg("line", { class: "best", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
    points.map(({ predicted, observed, count }) => [
      svg("line", {
        class: "stem",
        x1: x(predicted),
        x2: x(predicted),
        y1: y(predicted),
        y2: y(observed),
      }),
      svg("circle", {
        class: "dot",
        cx: x(predicted),
        cy: y(observed),
        r: 3 + 6 * Math.sqrt(count / most), // the area tells how many
      }),
    ]),
    svg("text", { x: x(0.5), y: y(0) + 34, "text-anchor": "middle" }, "said to be so likely"),
    svg("text", { x: x(0) + 6, y: y(1) + 14 }, "were right"),
  );
}

function table(points, one, does) {
  return el(
    "table",
    {},
    el("caption", {}, `How often a ${one} ${does}`),
    el(
      "thead",
      {},
      el("tr", {}, ["Said", "Right", "Answers"].map((name) => el("th", { scope: "col" }, name))),
    ),
    el(
      "tbody",
      {},
      points.map(({ predicted, observed, count }) =>
        el(
          "tr",
          {},
          [share(predicted), share(observed), Math.round(count)].map((text) => el("td", {}, text)),
        ),
      ),
    ),
  );
}
