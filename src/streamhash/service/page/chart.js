// The timeline: quality, gain, bits, items and the serving model over one axis, in plain SVG.

import { announce, el, svg } from "./elements.js";
import { clock, count, counted, roundUp, share } from "./format.js";

const LEFT = 44; // room for the numbers of the axes
const RIGHT = 14;
const TOP = 38; // room for the marks of refreshes and drifts
const GAP = 30;
const BEFORE_THE_FIRST =
  "The curve begins with the first items that are learned while a model serves.";

const bits = (value) => (Number.isFinite(value) ? `${value.toFixed(2)} bits` : "–");

const least = (points, key, floor) =>
  roundUp(Math.max(floor, ...points.map((point) => point[key]).filter(Number.isFinite)));

/** What is drawn one below the other; each has a curve, or dots where a refresh was. */
const PANELS = [
  {
    key: "precision",
    title: "Precision of answers before learning",
    height: 130,
    top: () => 1,
    format: String,
    kind: "main",
  },
  {
    key: "gain",
    title: "Gain of a refresh, bits",
    height: 50,
    top: (points) => least(points, "gain", 0.02),
    format: String,
  },
  { key: "balance", title: "Balance of bits, 1 is best", height: 50, top: () => 1, format: String },
  {
    key: "flips",
    title: "Bits flipped by a refresh, mean share",
    height: 50,
    top: (_, events) => least(events, "flips", 0.1),
    format: String,
    dots: true,
  },
  {
    key: "items",
    title: "Items",
    height: 50,
    top: (points) => least(points, "items", 10),
    format: count,
    kind: "filled",
  },
];

/** A timeline that can be drawn again and again; `across` is "time" or "labelled". */
export function timeline() {
  const readout = el("p", { class: "readout" });
  const stage = el("div", { class: "stage" });
  const element = el(
    "figure",
    {
      class: "timeline",
      tabindex: "0",
      role: "group",
      "aria-label":
        "Timeline. Left and right arrow keys read its points; the same numbers are in the table below.",
    },
    readout,
    stage,
  );
  let shown = null;
  let at = null; // the point that is read, null for the last
  let first = 0; // where the axis begins and ends
  let last = 1;

  function draw(history, across) {
    const { series, refreshes, drifts } = history;
    shown = { points: series, events: refreshes, drifts, across };
    paint();
  }

  function paint() {
    if (shown === null || stage.clientWidth === 0) return;
    const { points, events, drifts, across } = shown;
    const width = stage.clientWidth;
    const places = [...points, ...events, ...drifts].map((each) => each[across]);
    if (places.length === 0) {
      // An axis from nowhere to nowhere can't be drawn.
      stage.replaceChildren();
      readout.textContent = BEFORE_THE_FIRST;
      return;
    }
    first = Math.min(...places);
    last = Math.max(...places, first + 1);
    last += (last - first) / 40; // so that what has just happened is seen
    const x = (value) => LEFT + ((value - first) / (last - first)) * (width - LEFT - RIGHT);
    let y = TOP;
    const parts = [];
    for (const panel of PANELS) {
      parts.push(paintPanel(panel, y, x, width));
      y += panel.height + GAP;
    }
    parts.push(...versions(y, x, events));
    const bottom = y + 22;
    parts.push(axis(bottom, x, across, width));
    parts.unshift(...marks(x, events, drifts, across, bottom));
    const read = points[at ?? points.length - 1];
    if (at !== null && read)
      parts.push(
        svg("line", {
          class: "cross",
          x1: x(read[across]),
          x2: x(read[across]),
          y1: TOP,
          y2: bottom,
        }),
      );
    stage.replaceChildren(
      svg(
        "svg",
        {
          width,
          height: bottom + 24,
          viewBox: `0 0 ${width} ${bottom + 24}`,
          role: "img",
          "aria-label": summary(shown),
        },
        parts,
      ),
    );
    readout.textContent = read
      ? `${at === null ? "Last point" : clock(read.time)}: precision ${share(read.precision)}, gain ${bits(read.gain)}, ${counted(read.items, "item")}, model ${read.model}`
      : BEFORE_THE_FIRST;
  }

  function paintPanel({ key, title, height, top, format, kind, dots }, y, x, width) {
    const { points, events, across } = shown;
    const highest = top(points, events);
    const h = (value) => y + height - (Math.min(Math.max(value, 0), highest) / highest) * height;
    const rows = (dots ? events : points).filter((each) => Number.isFinite(each[key]));
    const ticks = kind === "main" ? [0, 0.5, 1] : [0, highest];
    const path = rows
      .map((each, i) => `${i ? "L" : "M"}${x(each[across]).toFixed(1)} ${h(each[key]).toFixed(1)}`)
      .join("");
    const end = rows.at(-1);
    return svg(
      "g",
      {},
      svg("text", { class: "panel-title", x: LEFT, y: y - 7 }, title),
      ticks.map((value) => [
        svg("line", { class: "rule", x1: LEFT, x2: width - RIGHT, y1: h(value), y2: h(value) }),
        svg(
          "text",
          { class: "tick", x: LEFT - 8, y: h(value) + 4, "text-anchor": "end" },
          format(value),
        ),
      ]),
      kind === "filled" && end
        ? svg("path", { class: "area", d: `${path}V${h(0)}H${x(rows[0][across]).toFixed(1)}z` })
        : null,
      dots
        ? rows.map((each) => [
            svg("line", {
              class: "stem",
              x1: x(each[across]),
              x2: x(each[across]),
              y1: h(0),
              y2: h(each[key]),
            }),
            svg("circle", { class: "dot", cx: x(each[across]), cy: h(each[key]), r: 3.5 }),
          ])
        : svg("path", { class: `curve ${kind ?? ""}`, d: path }),
      !dots && end
        ? svg("circle", { class: "dot", cx: x(end[across]), cy: h(end[key]), r: 3.5 })
        : null,
    );
  }

  /** The models that served, each from its refresh to the next. */
  function versions(y, x, events) {
    const { across } = shown;
    return [
      svg("text", { class: "panel-title", x: LEFT, y: y - 7 }, "Serving model"),
      ...events.map((each, i) => {
        const from = x(each[across]);
        const long = x(events[i + 1]?.[across] ?? last) - from;
        return svg(
          "g",
          {},
          svg("rect", {
            class: `version ${each.model % 2 ? "odd" : "even"}`,
            x: from,
            y,
            width: Math.max(long, 1),
            height: 16,
          }),
          long > 9 * String(each.model).length + 4
            ? svg("text", { class: "version-word", x: from + 5, y: y + 12 }, each.model)
            : null,
        );
      }),
    ];
  }

  function marks(x, events, drifts, across, bottom) {
    const line = (each, kind) =>
      svg("line", {
        class: kind,
        x1: x(each[across]),
        x2: x(each[across]),
        y1: kind === "drift-mark" ? 12 : TOP - 4,
        y2: bottom,
      });
    return [
      ...events.map((each) => line(each, "refresh-mark")),
      ...drifts.map((each) => [
        line(each, "drift-mark"),
        svg("path", { class: "drift-flag", d: `M${x(each[across])} 2l6 11h-12z` }),
      ]),
    ].flat();
  }

  function axis(y, x, across, width) {
    const n = Math.max(2, Math.min(6, Math.floor(width / 130)));
    const word = (value) =>
      across === "time" ? clock(value, last - first < 7200) : count(Math.round(value));
    return svg(
      "g",
      {},
      Array.from({ length: n }, (_, i) => {
        const value = first + ((last - first) * i) / (n - 1);
        const anchor = i === 0 ? "start" : i === n - 1 ? "end" : "middle";
        return svg(
          "text",
          { class: "tick", x: x(value), y: y + 16, "text-anchor": anchor },
          word(value),
        );
      }),
    );
  }

  function read(index) {
    const n = shown?.points.length ?? 0;
    if (n === 0) return;
    at = index === null || index >= n - 1 ? null : Math.max(0, index);
    paint();
  }

  element.addEventListener("keydown", (event) => {
    const end = (shown?.points.length ?? 1) - 1;
    const step = { ArrowLeft: (at ?? end) - 1, ArrowRight: (at ?? end) + 1, Home: 0, End: end }[
      event.key
    ];
    if (step === undefined) return;
    event.preventDefault();
    read(step);
    announce(readout.textContent);
  });
  stage.addEventListener("pointermove", (event) => {
    if (!shown?.points.length) return;
    const box = stage.getBoundingClientRect();
    const places = shown.points.map((point) => point[shown.across]);
    const wanted =
      first + ((event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT)) * (last - first);
    read(
      places.reduce(
        (best, place, i) => (Math.abs(place - wanted) < Math.abs(places[best] - wanted) ? i : best),
        0,
      ),
    );
  });
  stage.addEventListener("pointerleave", () => read(null));
  new ResizeObserver(paint).observe(stage);
  return { element, draw };
}

function summary({ points, events, drifts }) {
  const end = points.at(-1);
  const course = end
    ? `Precision from ${share(points[0].precision)} to ${share(end.precision)}`
    : "No curve yet";
  return `${course}; ${counted(events.length, "refresh", "refreshes")}, ${counted(drifts.length, "drift")}.`;
}
