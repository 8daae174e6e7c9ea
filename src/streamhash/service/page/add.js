// Adding items: by a form, or by a file that the service reads.

import { api } from "./api.js";
import { choice, el, notice, waiting } from "./elements.js";
import { readLabel } from "./item.js";
import { FileError, readVectors } from "./vectors.js";
import { counted, plain } from "./format.js";

const FORMATS = ["jsonl", "csv", "parquet", "npy", "npz"];
const LARGEST = 32 * 2 ** 20; // bytes, as the service takes by itself

/** A button, and what it opens; `added` is called with words for what was stored. */
export function addPanel(page, added) {
  const button = el(
    "button",
    { type: "button", class: "small", "aria-expanded": "false", onclick: () => toggle() },
    "Add items",
  );
  const problem = el("div", {});
  const fileInput = el("input", {
    type: "file",
    accept: FORMATS.map((each) => `.${each}`).join(","),
    class: "unseen",
    onchange: () => take(fileInput.files[0]),
  });
  const existing = choice(
    "Ids that are there",
    [
      ["refuse", "refuse the file"],
      ["skip", "leave them as they are"],
      ["replace", "replace them"],
    ],
    () => {},
  );
  const drop = el(
    "label",
    { class: "drop" },
    fileInput,
    el("strong", {}, "Drop a file of items, or choose one"),
    el("span", { class: "quiet" }, "JSON lines, CSV, Parquet, .npy or .npz, with id, vector, label and metadata"),
  );
  const id = el("input", { name: "id", autocomplete: "off", placeholder: "numbered on" });
  const label = el("input", { name: "label", autocomplete: "off" });
  const vector = el("textarea", { name: "vector", rows: "3", spellcheck: "false", placeholder: "[0.1, 0.2, …]" });
  const metadata = el("textarea", { name: "metadata", rows: "3", spellcheck: "false", placeholder: '{"title": "…"}' });
  const element = el(
    "section",
    { class: "card add-panel", "aria-label": "Add items", hidden: true },
    el("div", { class: "add-file" }, drop, existing.element),
    el(
      "form",
      { class: "add-form", onsubmit: store },
      el(
        "div",
        { class: "row" },
        el("label", { class: "field grow" }, el("span", {}, "Id"), id),
        el("label", { class: "field grow" }, el("span", {}, "Label"), label),
      ),
      el("label", { class: "field" }, el("span", {}, "Vector"), vector),
      el("label", { class: "field" }, el("span", {}, "Metadata"), metadata),
      el("div", { class: "row" }, el("button", { type: "submit", class: "primary" }, "Add")),
    ),
    problem,
  );
  for (const [name, on] of [
    ["dragenter", true],
    ["dragover", true],
    ["dragleave", false],
    ["drop", false],
  ]) {
    element.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", on);
      if (name === "drop" && event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
    });
  }

  function toggle(open = element.hidden) {
    element.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    problem.replaceChildren();
  }

  function fail(words) {
    problem.replaceChildren(notice("problem", "Nothing was added.", words));
  }

  async function take(file) {
    if (!file) return;
    fileInput.value = "";
    const format = file.name.toLowerCase().split(".").pop();
    if (!FORMATS.includes(format)) return fail(`${file.name} is none of ${FORMATS.join(", ")}.`);
    if (file.size > LARGEST)
      return fail(`${file.name} is larger than 32 MB; add it with streamhash live add, or in parts.`);
    problem.replaceChildren(waiting(`Reading ${file.name}`));
    try {
      const { read, added: stored, columns } = await api.addFile(file, {
        format,
        existing: existing.select.value,
      });
      toggle(false);
      const rest = read > stored ? `; ${counted(read - stored, "item")} were there` : "";
      added(`${counted(stored, "item")} of ${file.name} added${rest}.`, columns ?? "");
    } catch (error) {
      fail(error.message);
    }
  }

  async function store(event) {
    event.preventDefault();
    try {
      const rows = await readVectors(new File([vector.value], "vector.json"), page.status?.features ?? null);
      const facts = metadata.value.trim() ? JSON.parse(metadata.value) : null;
      const name = id.value.trim();
      const numbers = page.status?.ids === "whole numbers" || (!page.status?.ids && /^\d+$/.test(name));
      const body = {
        vectors: [rows[0]],
        ...(name && { ids: [numbers && /^\d+$/.test(name) ? Number(name) : name] }),
        ...(label.value.trim() && { labels: [readLabel(label.value, page.status)] }),
        ...(facts && { metadata: [facts] }),
      };
      await api.add(body);
      for (const each of [id, label, vector, metadata]) each.value = "";
      toggle(false);
      added(name ? `Item ${plain(name)} is added.` : "The item is added.");
    } catch (error) {
      if (error instanceof FileError) fail(error.message.replace("vector.json", "the vector"));
      else fail(error instanceof SyntaxError ? "The metadata are no JSON." : error.message);
    }
  }

  return { button, element };
}
