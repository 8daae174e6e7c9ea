// Classes: how well the items of each are found, worked out when somebody asks for it.

import { api } from "./api.js";
import { el, level, notice, waiting } from "./elements.js";
import { counted, plain, share } from "./format.js";

const LISTED = 30; // classes, the worst first

export function classPanel(page) {
  const body = el("div", {});
  const button = el("button", { type: "button", class: "small", onclick: work }, "Work it out");
  const element = el(
    "section",
    { class: "card", "aria-labelledby": "classes-title" },
    el(
      "div",
      { class: "row spread" },
      el("h2", { id: "classes-title" }, "Which classes are found badly"),
      button,
    ),
    el(
      "p",
      { class: "quiet" },
      "Up to 20 items of each class ask a sample of the others: the share of neighbours with their label.",
    ),
    body,
  );
  let seed = 0;

  async function work() {
    button.disabled = true;
    body.replaceChildren(waiting("Asking with items of every class"));
    try {
      show(await api.quality(seed));
      seed += 1;
      button.textContent = "Again, by other items";
    } catch (error) {
      body.replaceChildren(notice("problem", "It could not be worked out.", error.message));
    }
    button.disabled = false;
  }

  function show({ classes, precision, queries, sample, model }) {
    if (classes.length === 0) {
      body.replaceChildren(notice("empty", "No item has a label.", "Label some, and try again."));
      return;
    }
    const shown = classes.slice(0, LISTED);
    const rest = classes.length > LISTED ? `, the worst ${LISTED} of ${classes.length} classes` : "";
    body.replaceChildren(
      el(
        "p",
        {},
        `${share(precision)} on average by model ${model}: ${counted(queries, "query", "queries")} on ${counted(sample, "item")}${rest}.`,
      ),
      el("ol", { class: "classes" }, shown.map(row)),
    );
  }

  function row({ label, queries, precision }) {
    const value = typeof label === "number" ? label : `'${label.replaceAll("'", "''")}'`;
    const where = page.status?.labels === "several" ? `${value} in labels` : `label = ${value}`;
    return el(
      "li",
      {},
      el("a", { href: page.address("items", { where }) }, plain(label)),
      level(precision),
      el("b", {}, share(precision)),
      el("span", { class: "quiet" }, counted(queries, "query", "queries")),
    );
  }

  return { element };
}
