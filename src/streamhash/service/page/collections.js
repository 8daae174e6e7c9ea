// Collections: what the service has, how large and how good each is; some are made and dropped here.

import { api } from "./api.js";
import { announce, choice, el, level, notice } from "./elements.js";
import { METHODS } from "./methods.js";
import { poll } from "./polling.js";
import { count, counted, share } from "./format.js";

const EVERY = 5000; // milliseconds

export function collectionsView(page) {
  const told = el("div", {});
  const rows = el("ul", { class: "collections" });
  const making = form(page, (name) => (location.hash = page.home(name)));
  const element = el(
    "div",
    { class: "view collections-view" },
    el("h1", { tabindex: "-1" }, "Collections"),
    el("p", { class: "lead" }, "Each has its own items, its own model and its own quality."),
    told,
    rows,
    making.element,
  );
  let polling = null;
  let drawn = "";

  function paint() {
    making.element.hidden = !page.canCreate;
    const now = JSON.stringify([page.collections, page.canCreate]);
    if (now === drawn) return; // what is pointed at stays where it is
    drawn = now;
    if (page.collections.length === 0) {
      const how = page.canCreate
        ? "Make the first one below."
        : "Start the service with collections, or with a folder to make some in.";
      rows.replaceChildren(el("li", {}, notice("empty", "There is no collection yet.", how)));
    } else rows.replaceChildren(...page.collections.map(row));
  }

  function row({ name, items, features, method, bits, model, precision, writable }) {
    return el(
      "li",
      { class: "card collection" },
      el(
        "div",
        { class: "collection-name" },
        el("h2", {}, el("a", { href: page.home(name) }, name)),
        el(
          "p",
          { class: "quiet" },
          [
            features === null ? "no vectors yet" : `vectors of ${count(features)} numbers`,
            writable ? null : "read only",
          ]
            .filter(Boolean)
            .join(" · "),
        ),
      ),
      fact("Items", count(items)),
      fact("Model", model ? `${method}, ${bits} bits` : `${method}, none yet`, model ? `number ${model}` : null),
      fact(
        "Precision",
        share(precision ?? NaN),
        Number.isFinite(precision) ? level(precision) : "not known yet",
      ),
      page.canCreate
        ? el(
            "button",
            { type: "button", class: "small", onclick: () => drop(name, items) },
            "Drop",
          )
        : null,
    );
  }

  function fact(title, value, below = null) {
    return el(
      "dl",
      { class: "collection-fact" },
      el("dt", {}, title),
      el("dd", {}, value),
      below ? el("dd", { class: "quiet" }, below) : null,
    );
  }

  async function drop(name, items) {
    const words = `Drop ${name}, with its ${counted(items, "item")}? Nothing brings them back.`;
    if (!confirm(words)) return;
    told.replaceChildren();
    try {
      await api.drop(name);
      announce(`${name} is dropped.`);
      await page.list();
      paint();
    } catch (error) {
      told.replaceChildren(notice("problem", `${name} was not dropped.`, error.message));
    }
  }

  return {
    element,
    show({ missing }, moved) {
      told.replaceChildren(
        ...(missing
          ? [notice("problem", `There is no collection ${missing}.`, "Choose one of these.")]
          : []),
      );
      paint();
      if (moved)
        polling = poll(() => page.list().then(paint), EVERY, page.tellTrouble);
    },
    hide() {
      polling?.stop();
    },
  };
}

/** A form that makes a collection. */
function form(page, made) {
  const name = el("input", {
    name: "name",
    required: true,
    pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]{0,99}",
    title: "Letters, digits, dots, dashes and underscores",
    autocomplete: "off",
    spellcheck: "false",
  });
  const method = choice("Method", METHODS.map((each) => [each, each.toUpperCase()]), () => {});
  const bits = choice("Bits", [16, 32, 64, 128, 256].map((n) => [n, n]), () => {});
  bits.select.value = 64;
  const problem = el("div", {});

  async function create(event) {
    event.preventDefault();
    problem.replaceChildren();
    const wanted = name.value.trim();
    try {
      await api.create({
        name: wanted,
        method: method.select.value,
        n_bits: Number(bits.select.value),
      });
      name.value = "";
      await page.list();
      made(wanted);
    } catch (error) {
      problem.replaceChildren(notice("problem", "It was not made.", error.message));
    }
  }

  const element = el(
    "form",
    { class: "card create", onsubmit: create, hidden: true },
    el("h2", {}, "New collection"),
    el(
      "div",
      { class: "row" },
      el("label", { class: "field grow" }, el("span", {}, "Name"), name),
      method.element,
      bits.element,
      el("button", { type: "submit" }, "Create"),
    ),
    problem,
  );
  return { element };
}
