// The timeline: quality, bits, items and the serving model over one axis, in plain SVG.
//
// Hours in which nothing happened take little room, however many; a stretch can be looked at closely.

import { announce, el, svg } from "./elements.js";
import { clock, count, counted, day, duration, roundUp, share, shortCount } from "./format.js";

const LEFT = 44; // room for the numbers of the axes
const RIGHT = 14;
const TOP = 38; // room for the marks of refreshes and drifts
const GAP = 30;
const BEFORE_THE_FIRST =
  "The curve begins with the first items that are learned while a model serves.";

const IDLE = 0.04; // of the axis that a stretch without anything takes
const LONG_IDLE = 20; // times the usual step: from here on a stretch is one
const LEAST_IDLE = 600; // seconds, at least
const LEAST_ZOOM = 12; // pixels that one must draw over

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
    format: shortCount,
    kind: "filled",
  },
];

/** A timeline that can be drawn again and again; `across` is "time" or "labelled". `zoomed` is called
 * with the stretch that one wants to look at closely, null for all of it. */
export function timeline(zoomed) {
  const readout = el("p", { class: "readout" });
  const stage = el("div", { class: "stage" });
  const whole = el(
    "button",
    { type: "button", class: "small", hidden: true, onclick: () => zoomed(null) },
    "Show all of it",
  );
  const element = el(
    "figure",
    {
      class: "timeline",
      tabindex: "0",
      role: "group",
      "aria-label":
        "Timeline. Left and right arrow keys read its points, + looks closer at the one that is read, - at all; the same numbers are in the table below.",
    },
    readout,
    stage,
    whole,
  );
  let shown = null;
  let at = null; // the point that is read, null for the last
  let axisOf = null; // from values to places and back
  let range = null; // what is looked at closely
  let drawn = null; // where a stretch begins that is being drawn over

  function draw(history, across) {
    shown = { ...history, across };
    paint();
  }

  /** What lies in the range, and the lines that lead out of it. */
  function inRange(each) {
    return range === null || (each[shown.across] >= range[0] && each[shown.across] <= range[1]);
  }

  function paint() {
    if (shown === null || stage.clientWidth === 0) return;
    const { across } = shown;
    const points = shown.series.filter(inRange);
    const events = shown.refreshes.filter(inRange);
    const drifts = shown.drifts.filter(inRange);
    Object.assign(shown, { points, events });
    const width = stage.clientWidth;
    const places = [...points, ...events, ...drifts].map((each) => each[across]);
    whole.hidden = range === null;
    if (places.length === 0) {
      // An axis from nowhere to nowhere can't be drawn.
      stage.replaceChildren();
      readout.textContent = BEFORE_THE_FIRST;
      return;
    }
    axisOf = axisFor(places, across, LEFT, width - RIGHT);
    const x = axisOf.to;
    let y = TOP;
    const parts = [];
    for (const panel of PANELS) {
      parts.push(paintPanel(panel, y, x, width));
      y += panel.height + GAP;
    }
    parts.push(...versions(y, x, events));
    const bottom = y + 22;
    parts.push(axis(bottom, across, width));
    parts.unshift(...idle(bottom));
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
          "aria-label": summary(shown.points, events, drifts),
        },
        parts,
      ),
    );
    readout.textContent = read
      ? `${at === null ? "Last point" : moment(read.time)}: precision ${share(read.precision)}, ${counted(read.items, "item")}, model ${read.model}`
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
        const long = (i + 1 < events.length ? x(events[i + 1][across]) : axisOf.right) - from;
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

  /** Where nothing happened for long, and for how long. */
  function idle(bottom) {
    return axisOf.idle.map(({ from, to, seconds }) =>
      svg(
        "g",
        {},
        svg("rect", { class: "gap", x: from, y: TOP - 14, width: to - from, height: bottom - TOP + 14 }),
        svg(
          "text",
          { class: "gap-word", x: (from + to) / 2, y: TOP - 18, "text-anchor": "middle" },
          duration(seconds),
        ),
      ),
    );
  }

  function axis(y, across, width) {
    const n = Math.max(2, Math.min(6, Math.floor(width / 130)));
    const long = axisOf.last - axisOf.first > 20 * 3600;
    const word = (value) => {
      if (across !== "time") return count(Math.round(value));
      return long ? `${day(value)} ${clock(value, false)}` : clock(value, axisOf.last - axisOf.first < 7200);
    };
    return svg(
      "g",
      {},
      Array.from({ length: n }, (_, i) => {
        const at = LEFT + ((width - LEFT - RIGHT) * i) / (n - 1);
        const anchor = i === 0 ? "start" : i === n - 1 ? "end" : "middle";
        return svg(
          "text",
          { class: "tick", x: at, y: y + 16, "text-anchor": anchor },
          word(axisOf.from(at)),
        );
      }),
    );
  }

  const moment = (time) =>
    axisOf.last - axisOf.first > 20 * 3600 ? `${day(time)} ${clock(time)}` : clock(time);

  function read(index) {
    const n = shown?.points?.length ?? 0;
    if (n === 0) return;
    at = index === null || index >= n - 1 ? null : Math.max(0, index);
    paint();
  }

  element.addEventListener("keydown", (event) => {
    const end = (shown?.points?.length ?? 1) - 1;
    const step = { ArrowLeft: (at ?? end) - 1, ArrowRight: (at ?? end) + 1, Home: 0, End: end }[
      event.key
    ];
    if (event.key === "-") zoomed(null);
    if (event.key === "+" && shown?.points?.length) closer();
    if (step === undefined) return;
    event.preventDefault();
    read(step);
    announce(readout.textContent);
  });
  /** Look at a quarter of what is shown, around the point that is read. */
  function closer() {
    const place = axisOf.to(shown.points[at ?? shown.points.length - 1][shown.across]);
    const half = (axisOf.right - LEFT) / 8;
    zoomed([axisOf.from(Math.max(LEFT, place - half)), axisOf.from(Math.min(axisOf.right, place + half))]);
  }

  const pointed = (event) => event.clientX - stage.getBoundingClientRect().left;
  stage.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && axisOf) drawn = pointed(event);
  });
  stage.addEventListener("pointermove", (event) => {
    if (!shown?.points?.length) return;
    const places = shown.points.map((point) => axisOf.to(point[shown.across]));
    const wanted = pointed(event);
    read(
      places.reduce(
        (best, place, i) => (Math.abs(place - wanted) < Math.abs(places[best] - wanted) ? i : best),
        0,
      ),
    );
    if (drawn === null) return;
    const [from, to] = [drawn, wanted].sort((a, b) => a - b);
    stage.firstChild.append(
      svg("rect", { class: "zoom", x: from, y: TOP, width: to - from, height: stage.clientHeight - TOP }),
    );
  });
  addEventListener("pointerup", (event) => {
    if (drawn === null) return;
    const [from, to] = [drawn, pointed(event)].sort((a, b) => a - b);
    drawn = null;
    if (to - from < LEAST_ZOOM) return;
    zoomed([axisOf.from(from), axisOf.from(to)]);
  });
  stage.addEventListener("pointerleave", () => drawn === null && read(null));

  /** Look closely at a stretch, or at all of it. */
  function zoom(to) {
    range = to;
    at = null;
    paint();
  }

  new ResizeObserver(paint).observe(stage);
  return { element, draw, zoom };
}

function summary(points, events, drifts) {
  const end = points.at(-1);
  const course = end
    ? `Precision from ${share(points[0].precision)} to ${share(end.precision)}`
    : "No curve yet";
  return `${course}; ${counted(events.length, "refresh", "refreshes")}, ${counted(drifts.length, "drift")}.`;
}

/** From values to places between two pixels, and back: long stretches without any are made short. */
export function axisFor(values, across, left, right) {
  const sorted = [...new Set(values)].sort((a, b) => a - b);
  const first = sorted[0];
  const end = sorted.at(-1);
  const last = Math.max(end, first + 1) + (Math.max(end, first + 1) - first) * 0.025;
  const steps = sorted.slice(1).map((value, i) => value - sorted[i]);
  const usual = [...steps].sort((a, b) => a - b)[Math.floor(steps.length / 2)] ?? 1;
  const isIdle = (step) => across === "time" && step > Math.max(LEAST_IDLE, LONG_IDLE * usual);
  const idleSteps = steps.filter(isIdle);
  const active = end - first - idleSteps.reduce((sum, step) => sum + step, 0);
  const short = (IDLE * Math.max(active, usual)) / (1 - Math.min(0.5, IDLE * idleSteps.length));
  // Pieces of the axis: values on the left, what they take of it on the right.
  const pieces = [];
  let at = 0;
  const add = (from, to, size, isGap = false) => {
    if (to > from) pieces.push({ from, to, start: at, size, isGap });
    at += size;
  };
  let begun = first;
  sorted.slice(1).forEach((value, i) => {
    if (!isIdle(steps[i])) return;
    add(begun, sorted[i], sorted[i] - begun);
    add(sorted[i], value, short, true);
    begun = value;
  });
  const tail = idleSteps.length ? end + Math.max(active, usual) * 0.025 : last;
  add(begun, Math.max(tail, begun + 1e-9), Math.max(tail, begun + 1e-9) - begun);
  const scale = (right - left) / at;
  const to = (value) => {
    const piece = pieces.findLast((each) => value >= each.from) ?? pieces[0];
    const share = Math.min(1, Math.max(0, (value - piece.from) / (piece.to - piece.from)));
    return left + (piece.start + share * piece.size) * scale;
  };
  const from = (place) => {
    const wanted = (place - left) / scale;
    const piece = pieces.findLast((each) => wanted >= each.start) ?? pieces[0];
    const share = piece.size ? (wanted - piece.start) / piece.size : 0;
    return piece.from + Math.min(1, Math.max(0, share)) * (piece.to - piece.from);
  };
  const idle = pieces
    .filter(({ isGap }) => isGap)
    .map((each) => ({ from: to(each.from), to: left + (each.start + each.size) * scale, seconds: each.to - each.from }));
  return { to, from, idle, first, last: end, right };
}
