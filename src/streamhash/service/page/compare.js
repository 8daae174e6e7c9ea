// Compare: two methods, or two versions of the model, side by side on the same queries.

import { api } from "./api.js";
import { bitsOf, strip } from "./bits.js";
import { announce, choice, el, level, notice, waiting } from "./elements.js";
import { emptiness } from "./empty.js";
import {
  agree,
  agreementOf,
  chips,
  facts,
  hasPicture,
  labelOf,
  nameOf,
  thumbnail,
  titleOf,
  toldOf,
} from "./items.js";
import { METHODS } from "./methods.js";
import { counted, plain, share } from "./format.js";

const SHOWN = 8; // queries whose answers are shown; the score is of more
const SIDES = ["left", "right"];

export function compareView(page) {
  const pickers = { left: choice("Left", [], pick), right: choice("Right", [], pick) };
  const k = choice(
    "Neighbours",
    [5, 10, 20].map((n) => [n, n]),
    pick,
  );
  k.select.value = 10;
  const other = el("button", { type: "button", onclick: () => drawAgain() }, "Other queries");
  const results = el("section", { "aria-label": "Results" });
  const element = el(
    "div",
    { class: "view compare-view" },
    el("h1", { tabindex: "-1" }, "Compare"),
    el(
      "p",
      { class: "lead" },
      "Two versions of the model, or two methods, answer the same queries, which are drawn over the whole collection, as many of each label as can be. All are tried on a sample of the items; a method learns from its labels first.",
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
  let queries = []; // items whose answers are shown
  let seed = 0; // of what is drawn
  let chosen = null; // ids, where the address has them
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

  function drawAgain() {
    [seed, chosen] = [seed + 1, null];
    pick();
  }

  function pick() {
    page.go("compare", {
      left: pickers.left.select.value,
      right: pickers.right.select.value,
      k: Number(k.select.value),
      ...(chosen === null ? { seed } : { ids: chosen }),
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
      chosen = Array.isArray(parameters.ids) && parameters.ids.length ? parameters.ids : null;
      seed = Number.isInteger(parameters.seed) ? parameters.seed : 0;
      const answer = await api.compare(
        {
          ...(chosen === null ? { seed, shown: SHOWN } : { queries: chosen }),
          k: Number(k.select.value),
          left: side(pickers.left.select.value),
          right: side(pickers.right.select.value),
        },
        { signal },
      );
      queries = (await api.itemsById(answer.ids, { signal })).items;
      show(answer);
    } catch (error) {
      if (!signal.aborted)
        results.replaceChildren(
          notice("problem", "The comparison did not work.", error.message, () => start(parameters)),
        );
    }
  }

  function show(answer) {
    const { difference, precision, sample } = answer;
    const names = Object.fromEntries(SIDES.map((name) => [name, sideName(answer[name])]));
    const verdict = describe(names.left, names.right, difference);
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
          ` ${counted(answer.queries, "query", "queries")} on ${counted(sample, "item")}${answer.queries > queries.length ? `; ${queries.length} of them below` : ""}.`,
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
    const picture = hasPicture(query);
    const title = titleOf(query);
    return el(
      "li",
      { class: picture ? "card" : "card titled" },
      el(
        "div",
        { class: "pairing-query" },
        picture ? thumbnail(query) : null,
        el("h3", {}, title ?? `Item ${plain(query.id)}`),
        el(
          "p",
          { class: "chips" },
          chips(query),
          title === null ? null : el("span", { class: "quiet" }, `item ${plain(query.id)}`),
        ),
        picture ? null : facts(query),
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
        { class: found.every(hasPicture) ? "found" : "found titles" },
        found.map((each) => {
          const agrees = agree(query.label, each.label);
          const far = counted(each.distance, "bit");
          const told = `Item ${toldOf(each)}, ${far} away${agrees === false ? ", other label" : ""}`;
          return el(
            "li",
            { class: agrees === false ? "other" : null },
            el(
              "a",
              { href: page.address("search", { id: each.id }), "aria-label": told, title: told },
              hasPicture(each)
                ? thumbnail(each)
                : el("span", { class: "cell-title" }, nameOf(each)),
              el("span", { class: "found-label" }, labelOf(each)),
              el("span", { class: "found-distance" }, far),
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

const sideName = ({ model, method }) => (method ? method.toUpperCase() : `Model ${model}`);

/** Which side is better, by how much, and whether that is more than chance. */
function describe(left, right, difference) {
  if (difference === null)
    return "The queries have no labels, so that neither side can be called better.";
  const { mean, low, high } = difference;
  if (low === null) return `One query tells nothing for sure: ${signed(mean)} for ${right}.`;
  const range = `${signed(mean)} for ${right}, between ${signed(low)} and ${signed(high)} with 95 % confidence`;
  if (low <= 0 && high >= 0) return `${left} and ${right} cannot be told apart: ${range}.`;
  const [better, worse] = mean > 0 ? [right, left] : [left, right];
  return `${better} is better than ${worse}: ${range}.`;
}

const signed = (value) => (value > 0 ? `+${share(value)}` : share(value));
