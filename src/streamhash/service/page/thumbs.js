// Thumbs: whether a neighbour is a good answer, told to the service, which learns from it.

import { api } from "./api.js";
import { announce, el, svg } from "./elements.js";
import { plain } from "./format.js";

const HAND =
  "M2 10h4v11H2zM8 20.2V10.4L11.6 2.6c1.5 0 2.6 1.2 2.3 2.7L13.1 9h6.1c1.3 0 2.2 1.2 1.9 2.5l-1.7 7.9c-.2.9-1 1.6-2 1.6H9.6c-.6 0-1.2-.3-1.6-.8z";

/** What was said in this window, by query and item. */
export function judgements() {
  const said = new Map();
  const key = (query, id) => JSON.stringify([query, id]);
  return {
    of: (query, id) => said.get(key(query, id)) ?? null,
    keep: (query, id, good) => said.set(key(query, id), good),
  };
}

/** Two buttons; `query` is {id} or {vector}, `kept` what was said so far. */
export function thumbs(query, item, kept) {
  const told = el("span", { class: "thumbs-problem", role: "alert" });
  const buttons = [true, false].map((good) =>
    el(
      "button",
      {
        type: "button",
        class: good ? "thumb-button good" : "thumb-button bad",
        "aria-label": `${good ? "A good answer" : "Not a good answer"}: item ${plain(item.id)}`,
        title: good ? "A good answer" : "Not a good answer",
        onclick: () => judge(good),
      },
      svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: HAND })),
    ),
  );
  const element = el("div", { class: "thumbs" }, buttons, told);

  function paint(isBusy = false) {
    const said = kept.of(query, item.id);
    buttons.forEach((button, i) => {
      button.setAttribute("aria-pressed", String(said === (i === 0)));
      button.setAttribute("aria-disabled", String(isBusy));
    });
  }

  /** Tell the service; the opposite of what was said before puts that right. */
  async function judge(good) {
    if (kept.of(query, item.id) === good || buttons[0].getAttribute("aria-disabled") === "true")
      return;
    told.textContent = "";
    paint(true);
    try {
      const asked = query.id === undefined ? { vectors: [query.vector] } : { query_ids: [query.id] };
      await api.feedback({ ...asked, ids: [item.id], good });
      kept.keep(query, item.id, good);
      announce(`Item ${plain(item.id)} is ${good ? "a good answer" : "not a good answer"}.`);
    } catch (error) {
      told.textContent = error.message;
    }
    paint();
  }

  paint();
  return element;
}
