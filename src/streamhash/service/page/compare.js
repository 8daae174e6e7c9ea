// Compare: two methods, or two versions of the model, side by side on the same queries.

import { api } from "./api.js";
import { bitsOf, strip } from "./bits.js";
import { announce, choice, el, level, notice, waiting } from "./elements.js";
import { emptiness } from "./empty.js";
import { agree, agreementOf, chips, labelOf, thumbnail, titleOf } from "./items.js";
import { counted, plain, share } from "./format.js";

// As the command line names them; a test holds this list against the library's.
export const METHODS = [
  "sdoh",
  "bsodh",
  "hmoh",
  "hcoh",
  "mihash",
  "osh",
  "adapthash",
  "okh",
  "sdohhc",
  "foh",
  "lemon",
  "ridgehash",
  "frosh",
  "sketchhash",
  "itq",
  "pcah",
  "lsh",
];
const QUERIES = 8;
const SIDES = ["left", "right"];

export function compareView(page) {
  const pickers = { left: choice("Left", [], pick), right: choice("Right", [], pick) };
  const k = choice(
    "Neighbours",
    [5, 10, 20].map((n) => [n, n]),
    pick,
  );
  k.select.value = 10;
  const other = el("button", { type: "button", onclick: () => draw().then(pick) }, "Other queries");
  const results = el("section", { "aria-label": "Results" });
  const element = el(
    "div",
    { class: "view compare-view" },
    el("h1", { tabindex: "-1" }, "Compare"),
    el(
      "p",
      { class: "lead" },
      "Two versions of the model, or two methods, answer the same queries. All are tried on a sample of the items; a method learns from its labels first.",
    ),
    el(
      "div",
      { class: "row controls" },
      pickers.left.element,
      pickers.right.element,
      k.element,
      other,
    ),
    results,
  );
  let queries = []; // items
  let running = null;
  let models = null; // how many there were when the choices were made
  let asked = {}; // what the address says
  let isEmpty = false;

  /** Fill both lists of choices, and keep what was chosen. */
  async function fill(chosen) {
    const numbers = (await api.models())
      .map(({ number }) => number)
      .filter((number) => number <= page.status.serving.model);
    models = page.status.serving.model;
    const groups = [
      {
        group: "Versions of the model",
        options: numbers
          .map((n) => [`model:${n}`, `Model ${n}${n === models ? " (serves)" : ""}`])
          .reverse(),
      },
      { group: "Methods", options: METHODS.map((name) => [`method:${name}`, name.toUpperCase()]) },
    ];
    const usual = {
      left: numbers.length > 1 ? `model:${numbers[0]}` : "method:lsh",
      right: `model:${models}`,
    };
    for (const side of SIDES) {
      const { select } = pickers[side];
      const before = chosen[side] ?? (select.value || usual[side]);
      select.replaceChildren(...choice("", groups, () => {}).select.children);
      select.value = before;
      if (select.selectedIndex < 0) select.value = usual[side];
    }
  }

  /** Draw queries from all over the collection, those with labels first. */
  async function draw() {
    const offset = Math.floor(Math.random() * Math.max(1, page.status.items - 100));
    const { items } = await api.newest(offset, 100);
    const order = items
      .map((item) => [item.label === null, Math.random(), item])
      .sort(([a, x], [b, y]) => a - b || x - y);
    queries = order.slice(0, QUERIES).map(([, , item]) => item);
  }

  function pick() {
    page.go("compare", {
      left: pickers.left.select.value,
      right: pickers.right.select.value,
      k: Number(k.select.value),
      ids: queries.map(({ id }) => id),
    });
  }

  const side = (value) => {
    const [kind, name] = value.split(":");
    return kind === "model" ? { model: Number(name) } : { method: name };
  };

  async function start(parameters) {
    asked = parameters;
    running?.abort();
    running = new AbortController();
    const { signal } = running;
    results.replaceChildren(waiting("Asking both sides"));
    try {
      if (page.status === null) await page.ask();
      if (page.status.serving.model === 0 || page.status.items < 2) {
        results.replaceChildren(emptiness(page.status));
        isEmpty = true;
        return;
      }
      isEmpty = false;
      if (models !== page.status.serving.model) await fill(parameters);
      for (const name of SIDES) if (parameters[name]) pickers[name].select.value = parameters[name];
      if (parameters.k) k.select.value = parameters.k;
      if (Array.isArray(parameters.ids) && parameters.ids.length) {
        const there = new Map(queries.map((item) => [item.id, item]));
        queries = await Promise.all(
          parameters.ids.map((id) => there.get(id) ?? api.item(id, { signal })),
        );
      } else if (queries.length === 0) await draw();
      if (signal.aborted) return;
      const answer = await api.compare(
        {
          queries: queries.map(({ id }) => id),
          k: Number(k.select.value),
          left: side(pickers.left.select.value),
          right: side(pickers.right.select.value),
        },
        { signal },
      );
      show(answer);
    } catch (error) {
      if (!signal.aborted)
        results.replaceChildren(
          notice("problem", "The comparison did not work.", error.message, () => start(parameters)),
        );
    }
  }

  function show(answer) {
    const { precision, sample } = answer;
    const names = Object.fromEntries(SIDES.map((name) => [name, nameOf(answer[name])]));
    const verdict = describe(names.left, names.right, precision);
    announce(verdict);
    results.replaceChildren(
      el(
        "div",
        { class: "scores" },
        SIDES.map((name) => score(names[name], precision[name])),
      ),
      el(
        "p",
        { class: "verdict" },
        verdict,
        el(
          "span",
          { class: "quiet" },
          ` ${counted(queries.length, "query", "queries")} on ${counted(sample, "item")}.`,
        ),
      ),
      el(
        "ol",
        { class: "pairings" },
        queries.map((query, i) =>
          pairing(
            query,
            SIDES.map((name) => ({
              name: names[name],
              code: answer[name].codes[i],
              found: answer[name].results[i],
            })),
          ),
        ),
      ),
    );
  }

  function score(name, value) {
    return el(
      "div",
      { class: "score" },
      el("h2", {}, name),
      el("p", { class: "big" }, share(value ?? NaN)),
      level(value),
      el("p", { class: "quiet" }, "of the neighbours have the query's label"),
    );
  }

  function pairing(query, answers) {
    const title = titleOf(query);
    return el(
      "li",
      { class: title === null ? "card" : "card titled" },
      el(
        "h3",
        { class: "pairing-query" },
        title === null ? thumbnail(query) : el("span", {}, title),
        el(
          "span",
          {},
          chips(query),
          el("span", { class: "quiet" }, `item ${plain(query.id)}`),
        ),
      ),
      el(
        "div",
        { class: "pairing-sides" },
        answers.map((answer) => answerOf(query, answer)),
      ),
    );
  }

  function answerOf(query, { name, code, found }) {
    return el(
      "div",
      { class: "answer" },
      el(
        "p",
        { class: "answer-title" },
        el("b", {}, name),
        query.label === null
          ? null
          : el("span", { class: "quiet" }, ` ${agreementOf(found, query.label)}`),
      ),
      strip(bitsOf(code, page.status.bits)),
      el(
        "ul",
        { class: found.some(titleOf) ? "found titles" : "found" },
        found.map((each) => {
          const agrees = agree(query.label, each.label);
          const title = titleOf(each);
          const words = [plain(each.id), title, labelOf(each)].filter(Boolean).join(", ");
          const told = `Item ${words}, ${counted(each.distance, "bit")} away${agrees === false ? ", other label" : ""}`;
          return el(
            "li",
            { class: agrees === false ? "other" : null },
            el(
              "a",
              { href: page.address("search", { id: each.id }), "aria-label": told, title: told },
              title === null ? thumbnail(each) : el("span", { class: "cell-title" }, title),
              el("span", { class: "found-distance" }, each.distance),
            ),
          );
        }),
      ),
    );
  }

  return {
    element,
    show: start,
    hide() {
      running?.abort();
    },
    told(status) {
      if (isEmpty && status.serving.model) start(asked);
      else if (models !== null && status.serving.model !== models) fill({}).catch(() => {}); // tried again with the next status
    },
  };
}

const nameOf = ({ model, method }) => (method ? method.toUpperCase() : `Model ${model}`);

function describe(left, right, precision) {
  if (precision.left === null || precision.right === null)
    return "The queries have no labels, so that neither side can be called better.";
  const gap = precision.right - precision.left;
  if (Math.abs(gap) < 0.0005) return `${left} and ${right} do equally well on these queries.`;
  const [better, worse] = gap > 0 ? [right, left] : [left, right];
  return `${better} is better than ${worse} by ${share(Math.abs(gap))} on these queries.`;
}
