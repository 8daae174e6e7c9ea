// Live: how the collection does while the stream goes on, and the button that refreshes it.

import { api } from "./api.js";
import { bars } from "./bars.js";
import { timeline } from "./chart.js";
import { choice, el, say, waiting } from "./elements.js";
import { emptiness } from "./empty.js";
import { poll } from "./polling.js";
import { refreshPanel } from "./refresh.js";
import { classPanel } from "./classes.js";
import { reliability } from "./reliability.js";
import { ago, bytes, clock, count, counted, day, share } from "./format.js";

const EVERY = 1500; // milliseconds
const LISTED = 12; // rows of each table

export function liveView(page) {
  const tiles = {};
  const chart = timeline((stretch) => go({ stretch }));
  const across = choice(
    "Across",
    [
      ["time", "time"],
      ["labelled", "labelled items"],
    ],
    (value) => go({ across: value, stretch: null }),
  );
  const empty = el("div", {}, waiting("Asking the service"));
  const balance = el("div", { class: "panel" });
  const flips = el("div", { class: "panel" });
  const plots = el("div", { class: "plots" });
  const tables = el("div", { class: "tables" });
  const refresh = refreshPanel(page);
  const classes = classPanel(page);
  const body = el(
    "div",
    { class: "live-body", hidden: true },
    el(
      "dl",
      { class: "tiles" },
      tile("precision", "Precision of answers"),
      tile("items", "Items"),
      tile("learner", "Learner"),
      tile("serving", "Serving"),
    ),
    el(
      "section",
      { class: "card", "aria-labelledby": "timeline-title" },
      el(
        "div",
        { class: "row spread" },
        el("h2", { id: "timeline-title" }, "Timeline"),
        across.element,
      ),
      chart.element,
      el(
        "p",
        { class: "legend quiet" },
        el("span", { class: "key refresh-key" }),
        "refresh ",
        el("span", { class: "key drift-key" }),
        "drift: answers got lastingly worse. Draw over a stretch to look closer; hours in which nothing happened are grey.",
      ),
      el("details", {}, el("summary", {}, "The same as tables"), tables),
    ),
    classes.element,
    el(
      "section",
      { class: "card", "aria-labelledby": "reliability-title" },
      el("h2", { id: "reliability-title" }, "How sure answers are"),
      el(
        "p",
        { class: "quiet" },
        "What was said of answers before they were learned, and how often it came true; on the diagonal, both are the same.",
      ),
      plots,
    ),
    el(
      "div",
      { class: "beside" },
      refresh.element,
      el(
        "section",
        { class: "card bit-card", "aria-labelledby": "bits-title" },
        el("h2", { id: "bits-title" }, "Bits"),
        balance,
        flips,
      ),
    ),
  );
  const element = el(
    "div",
    { class: "view live-view" },
    el("h1", { tabindex: "-1" }, "Live"),
    el(
      "p",
      { class: "lead" },
      "Every labelled item is first a query, judged by its neighbours' labels, and then a lesson. A refresh puts what was learned to work.",
    ),
    empty,
    body,
  );
  let polling = null;
  let last = null; // the last history
  let drawn = ""; // what the plots show
  let looking = { across: "time", stretch: null }; // at what of the timeline

  /** Change what the timeline shows, and have the address say it. */
  function go(changes) {
    looking = { ...looking, ...changes };
    const { across: axis, stretch } = looking;
    const rounded = stretch?.map((value) => Math.round(value * 10) / 10);
    page.go("live", {
      ...(axis === "labelled" && { across: axis }),
      ...(rounded && { stretch: rounded }),
    });
  }

  function tile(name, title) {
    tiles[name] = { big: el("span", { class: "big" }), small: el("span", { class: "quiet" }) };
    return el(
      "div",
      { class: `tile ${name}` },
      el("dt", {}, title),
      el("dd", {}, tiles[name].big, tiles[name].small),
    );
  }

  function set(name, big, small) {
    say(tiles[name].big, big);
    say(tiles[name].small, small);
  }

  async function ask() {
    const [history] = await Promise.all([api.history(), page.ask()]);
    last = history;
    paintHistory();
  }

  function paint(status) {
    const { learner, serving, quality } = status;
    body.hidden = false;
    empty.replaceChildren(...(serving.model ? [] : [emptiness(status)]));
    set(
      "precision",
      share(quality.precision ?? NaN),
      quality.answers
        ? `recent mean, of ${counted(quality.answers, "answer")}`
        : "no labelled item has asked yet",
    );
    set(
      "items",
      count(status.items),
      `${count(status.labelled)} labelled, ${counted(status.classes, "class", "classes")}, ${bytes(status.disk_bytes)}`,
    );
    set(
      "learner",
      learner.method,
      [
        `${count(learner.learned)} learned`,
        learner.waiting ? `${count(learner.waiting)} waiting` : null,
        status.feedback?.stored
          ? `${counted(status.feedback.stored, "judged answer")}, ${count(status.feedback.learned)} of them learned`
          : null,
      ]
        .filter(Boolean)
        .join(", "),
    );
    set(
      "serving",
      serving.model ? `Model ${serving.model}` : "None",
      serving.since
        ? `${count(serving.learned)} learned, began ${ago(serving.since)}`
        : "serves as soon as one is learned",
    );
    refresh.tell(status);
    paintBits(status.codes);
    const known = JSON.stringify(quality.reliability);
    if (known !== drawn) paintReliability(quality.reliability); // else an open table would close
    drawn = known;
  }

  function paintHistory() {
    if (last === null) return;
    chart.draw(last, across.select.value);
    paintTables();
  }

  function paintBits({ ones, flips: flipped }) {
    if (!ones) balance.replaceChildren(el("p", { class: "quiet" }, "There are no codes yet."));
    else {
      const even = ones.filter((value) => value >= 0.4 && value <= 0.6).length;
      const worst = ones.reduce(
        (worst, value, i) => (Math.abs(value - 0.5) > Math.abs(ones[worst] - 0.5) ? i : worst),
        0,
      );
      const told = `${even} of ${ones.length} bits are one in 40 to 60 % of the items. The most lopsided is bit ${worst + 1}, one in ${Math.round(ones[worst] * 100)} %.`;
      balance.replaceChildren(
        el("h3", {}, "Balance: share of ones"),
        bars(ones, { middle: true, told }),
        el("p", { class: "quiet" }, told),
      );
    }
    if (!flipped)
      flips.replaceChildren(
        el("h3", {}, "Flips"),
        el(
          "p",
          { class: "quiet" },
          "Seen from the second model on: the share of items in which a refresh changed each bit.",
        ),
      );
    else {
      const all = flipped.reduce((sum, value) => sum + value, 0) / flipped.length;
      const told = `The last refresh changed ${Math.round(all * 100)} % of all bits, and bit ${flipped.indexOf(Math.max(...flipped)) + 1} in the most items (${Math.round(Math.max(...flipped) * 100)} %).`;
      flips.replaceChildren(
        el("h3", {}, "Flips by the last refresh"),
        bars(flipped, { told }),
        el("p", { class: "quiet" }, told),
      );
    }
  }

  function paintReliability(known) {
    const open = [...plots.querySelectorAll("details")].map((each) => each.open);
    plots.replaceChildren(...reliability(known));
    plots.querySelectorAll("details").forEach((each, i) => (each.open = open[i]));
  }

  function paintTables() {
    if (!tables.closest("details").open) return;
    const { refreshes, drifts, series } = last;
    tables.replaceChildren(
      table(
        "Refreshes",
        ["Time", "Model", "Learned", "Items", "Seconds"],
        refreshes.map((each) => [
          `${day(each.time)} ${clock(each.time)}`,
          each.model,
          count(each.learned),
          count(each.items),
          each.seconds.toFixed(2),
        ]),
      ),
      table(
        "Drifts",
        ["Time", "Labelled items", "Precision"],
        drifts.map((each) => [`${day(each.time)} ${clock(each.time)}`, count(each.labelled), share(each.precision)]),
      ),
      table(
        "Quality",
        ["Time", "Items", "Model", "Precision", "Balance"],
        series.map((each) => [
          `${day(each.time)} ${clock(each.time)}`,
          count(each.items),
          each.model,
          share(each.precision),
          share(each.balance),
        ]),
      ),
    );
  }
  tables.closest("details").addEventListener("toggle", paintHistory);

  return {
    element,
    show(parameters, moved) {
      const { across: axis, stretch } = parameters;
      const isStretch = Array.isArray(stretch) && stretch.length === 2 && stretch.every(Number.isFinite);
      looking = { across: axis === "labelled" ? axis : "time", stretch: isStretch ? stretch : null };
      across.select.value = looking.across;
      chart.zoom(looking.stretch);
      paintHistory();
      if (!moved) return;
      if (page.status) paint(page.status);
      polling = poll(ask, EVERY, page.tellTrouble);
      refresh.onstart = () => polling?.now();
    },
    hide() {
      polling?.stop();
    },
    told: paint,
  };
}

function table(caption, head, rows) {
  const shown = rows.slice(-LISTED).reverse();
  const more = rows.length > LISTED ? `, the last ${LISTED} of ${rows.length}` : "";
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el(
      "table",
      {},
      el("caption", {}, caption + more),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          head.map((name) => el("th", { scope: "col" }, name)),
        ),
      ),
      el(
        "tbody",
        {},
        shown.length
          ? shown.map((row) =>
              el(
                "tr",
                {},
                row.map((value) => el("td", {}, value)),
              ),
            )
          : el("tr", {}, el("td", { colspan: head.length }, "none so far")),
      ),
    ),
  );
}
