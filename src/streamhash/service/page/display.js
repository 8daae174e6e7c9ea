// How items are shown: which fields are title, subtitle and picture, and what the collection is about.

import { api } from "./api.js";
import { choice, el, notice } from "./elements.js";

/** A button, and the form that it opens; `done` is called when something was changed. */
export function displayPanel(page, done) {
  const button = el(
    "button",
    { type: "button", class: "small", "aria-expanded": "false", onclick: toggle },
    "Display",
  );
  const element = el("form", { class: "card display-panel", hidden: true, onsubmit: store });

  function toggle() {
    element.hidden = !element.hidden;
    button.setAttribute("aria-expanded", String(!element.hidden));
    if (!element.hidden) fill();
  }

  function fill() {
    const settings = page.status?.display ?? {};
    const plain = (name) => name.replace(/^"(.*)"$/, "$1");
    const fields = Object.keys(page.status?.fields ?? {}).map(plain);
    const names = [...new Set(fields.map((name) => name.split(".")[0]))];
    const options = [["", "none"], ...names.map((name) => [name, name])];
    const title = choice("Title", options, () => {});
    title.select.name = "title";
    title.select.value = settings.title ?? "";
    const image = choice("Picture", options, () => {});
    image.select.name = "image";
    image.select.value = settings.image ?? "";
    element.replaceChildren(
      el("h2", {}, "How items are shown"),
      el(
        "p",
        { class: "quiet" },
        settings.guessed
          ? "Guessed from the metadata. What you choose here is kept with the collection, for everybody."
          : "Kept with the collection, for everybody.",
      ),
      el("div", { class: "row" }, title.element, image.element),
      el(
        "fieldset",
        { class: "checks" },
        el("legend", {}, "Below the title"),
        names.map((name) =>
          el(
            "label",
            {},
            el("input", {
              type: "checkbox",
              name: "subtitle",
              value: name,
              checked: (settings.subtitle ?? []).includes(name),
            }),
            name,
          ),
        ),
      ),
      el(
        "label",
        { class: "field" },
        el("span", {}, "About this collection"),
        el("textarea", { name: "about", rows: "2", maxlength: "2000" }, settings.about ?? ""),
      ),
      el("div", { class: "row" }, el("button", { type: "submit", class: "primary" }, "Save")),
    );
  }

  async function store(event) {
    event.preventDefault();
    const said = new FormData(element);
    try {
      await api.setDisplay({
        title: said.get("title") || null,
        subtitle: said.getAll("subtitle"),
        image: said.get("image") || null,
        about: said.get("about").trim() || null,
      });
      toggle();
      done();
    } catch (error) {
      element.append(notice("problem", "It was not kept.", error.message));
    }
  }

  return { button, element };
}
