// Building elements. No markup is ever made from text, so that nothing stored can become code.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element. Attributes that begin with "on" are listeners; null and false leave one out. */
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Make an element of SVG. */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined),
  );
  return element;
}

/** Say something to people who listen to the page rather than look at it. */
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}

/** Set a text, but only if it is another one: listeners hear of every setting. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A notice in plain words; `again` adds a button that tries once more. */
export function notice(kind, title, text = "", again = null) {
  return el(
    "div",
    { class: `notice ${kind}`, role: kind === "problem" ? "alert" : null },
    el("p", { class: "notice-title" }, title),
    text ? el("p", {}, text) : null,
    again ? el("button", { type: "button", onclick: again }, "Try again") : null,
  );
}

/** What to show while an answer is on its way. */
export function waiting(text) {
  return el(
    "p",
    { class: "waiting" },
    el("span", { class: "spinner", "aria-hidden": "true" }),
    text,
  );
}

/** A share as a bar that is filled up to it. */
export function level(value) {
  return svg(
    "svg",
    { class: "level", viewBox: "0 0 1 1", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { width: value ?? 0, height: 1 }),
  );
}

/** A labelled choice; options are [value, text] or {group, options}. */
export function choice(label, options, onchange) {
  const option = ([value, text]) => el("option", { value }, text);
  const select = el(
    "select",
    { onchange: () => onchange(select.value) },
    options.map((each) =>
      each.group ? el("optgroup", { label: each.group }, each.options.map(option)) : option(each),
    ),
  );
  return { select, element: el("label", { class: "field" }, el("span", {}, label), select) };
}
