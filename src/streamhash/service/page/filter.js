// The filter line: a condition as in SQL after WHERE, with completion of the names of fields.

import { el } from "./elements.js";
import { sentence } from "./format.js";

const LONGEST = 1000; // characters
const OFFERED = 50; // names at a time
const OF_ITEMS = { id: "of the item", label: "of the item", labels: "list" }; // beside metadata
const WORD = /(?:[\p{L}_][\p{L}\p{N}_.]*|["`][^"`]*)?$/u; // what is being written, up to the caret
const BEFORE_A_FIELD = /(?:^|\(|\b(?:and|or|not|in))\s*$/i;
const EXAMPLES = {
  number: (name) => `${name} >= 10`,
  "whole number": (name) => `${name} >= 10`,
  date: (name) => `${name} >= date '2026-01-31'`,
  string: (name) => `${name} = 'text'`,
  boolean: (name) => name,
};

/** A line that calls `apply` with what was written in it. */
export function filterLine(apply) {
  const list = el("ul", {
    id: "filter-fields",
    class: "completions",
    role: "listbox",
    "aria-label": "Fields",
    hidden: true,
  });
  const problem = el("p", {
    id: "filter-problem",
    class: "filter-problem",
    role: "alert",
    hidden: true,
  });
  const input = el("input", {
    name: "where",
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-controls": list.id,
    "aria-describedby": problem.id,
    "aria-expanded": "false",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    enterkeyhint: "search",
    maxlength: LONGEST,
    oninput: () => offer(),
    onfocus: () => offer(),
    onclick: () => offer(),
    onblur: () => close(),
    onkeydown: pressed,
  });
  const element = el(
    "form",
    {
      class: "filter",
      onsubmit: (event) => {
        event.preventDefault();
        close();
        apply(input.value.trim());
      },
    },
    el(
      "div",
      { class: "row" },
      el("label", { class: "field" }, el("span", {}, "Only items where"), input),
      el("button", { type: "submit" }, "Filter"),
    ),
    list,
    problem,
  );
  let fields = OF_ITEMS;
  let chosen = -1; // of the names offered

  const written = () => input.value.slice(0, input.selectionStart);
  const inText = () => (written().match(/'/g) ?? []).length % 2 === 1;

  /** Offer the names that begin with, or hold, what is being written where a field may be. */
  function offer() {
    const word = WORD.exec(written())[0];
    const plain = word.replace(/["`]/g, "").toLowerCase();
    const before = written().slice(0, written().length - word.length);
    const names = Object.keys(fields).filter((name) => name.toLowerCase().includes(plain));
    const begins = (name) => name.replace(/^["`]/, "").toLowerCase().startsWith(plain);
    names.sort((a, b) => begins(b) - begins(a));
    const isWhole = names.some((name) => name === word);
    if (inText() || isWhole || names.length === 0 || !BEFORE_A_FIELD.test(before)) return close();
    chosen = -1;
    input.removeAttribute("aria-activedescendant");
    list.replaceChildren(...names.slice(0, OFFERED).map((name, i) => option(name, i, word)));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
  }

  function option(name, i, word) {
    return el(
      "li",
      {
        id: `filter-field-${i}`,
        role: "option",
        "aria-selected": "false",
        "data-name": name,
        onpointerdown: (event) => event.preventDefault(), // the line keeps the focus
        onclick: () => complete(name, word),
      },
      el("span", {}, name),
      el("span", { class: "quiet" }, fields[name]),
    );
  }

  function complete(name, word) {
    const start = written().length - word.length;
    input.setRangeText(`${name} `, start, input.selectionStart, "end");
    close();
    input.focus();
  }

  function close() {
    list.hidden = true;
    chosen = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function choose(i) {
    const options = [...list.children];
    chosen = (i + options.length) % options.length;
    options.forEach((each, j) => each.setAttribute("aria-selected", String(j === chosen)));
    options[chosen].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", options[chosen].id);
  }

  function pressed(event) {
    if (event.key === "ArrowDown" && list.hidden) offer();
    if (list.hidden) return;
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen < 0 ? -1 : chosen - 1);
    else if (event.key === "Escape") close();
    else if (chosen >= 0 && (event.key === "Enter" || event.key === "Tab"))
      complete(list.children[chosen].dataset.name, WORD.exec(written())[0]);
    else return;
    event.preventDefault();
  }

  return {
    element,
    get value() {
      return input.value.trim();
    },
    set value(text) {
      if (text !== input.value.trim()) input.value = text;
    },
    set disabled(is) {
      for (const each of element.querySelectorAll("input, button")) each.disabled = is;
    },
    /** Learn the fields and their types, as the service has them. */
    learn(types) {
      fields = { ...types, ...OF_ITEMS };
      const [name, type] =
        Object.entries(types).find(([name, type]) => type in EXAMPLES && !/\W/.test(name)) ?? [];
      input.placeholder = name ? EXAMPLES[type](name) : "label = 7";
    },
    /** Say what is wrong with the filter; nothing, if it is right. */
    tell(text) {
      problem.textContent = text;
      problem.hidden = text === "";
      if (text) {
        input.setAttribute("aria-invalid", "true");
        problem.scrollIntoView({ block: "nearest" });
      } else input.removeAttribute("aria-invalid");
    },
  };
}

/** What an error says of the filter; null if it is about something else. */
export function filterProblem(error) {
  const found = /^(?:[\w.]+: )?where(?:: |=)(.*)$/s.exec(error.said ?? "");
  return found && sentence(found[1]);
}
