// The page: which view is shown, what the top line says, and the question for a token.

import { api, keepToken, onTokenNeeded } from "./api.js";
import { compareView } from "./compare.js";
import { notice } from "./elements.js";
import { liveView } from "./live.js";
import { poll } from "./polling.js";
import { searchView } from "./search.js";
import { counted } from "./format.js";

const main = document.getElementById("content");
const connection = document.getElementById("connection");

/** What all views share: the last status, and the way to ask for a new one. */
const page = {
  status: null,
  go: (view, parameters = {}) => (location.hash = address(view, parameters)),
  address,
  ask,
  tellTrouble,
};
const views = { search: searchView(page), live: liveView(page), compare: compareView(page) };
const TITLES = { search: "Search", live: "Live", compare: "Compare" };
let shown = null;

/** The address of a view; values are JSON, so that the ids 7 and "7" stay apart. */
function address(view, parameters = {}) {
  const pairs = Object.entries(parameters).map(([name, value]) => [name, JSON.stringify(value)]);
  return pairs.length ? `#${view}?${new URLSearchParams(pairs)}` : `#${view}`;
}

function route() {
  const [name, query] = location.hash.slice(1).split("?");
  const view = Object.hasOwn(views, name) ? name : "search";
  const parameters = Object.create(null);
  for (const [key, value] of new URLSearchParams(query)) {
    try {
      parameters[key] = JSON.parse(value);
    } catch {
      // A hand-made address; that part of it is left out.
    }
  }
  const moved = shown !== view;
  if (moved) {
    if (shown) views[shown].hide();
    main.replaceChildren(connection, views[view].element);
    document.title = `${TITLES[view]} · streamhash`;
    for (const link of document.querySelectorAll("[data-view]")) {
      if (link.dataset.view === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    // The heading tells listeners where they are; at the first load the browser does.
    if (shown) views[view].element.querySelector("h1").focus({ preventScroll: true });
    if (shown) scrollTo(0, 0);
    shown = view;
  }
  views[view].show(parameters, moved);
}

/** Ask how the collection does, and tell whoever shows it. */
async function ask() {
  page.status = await api.status();
  connection.replaceChildren();
  const { items, bits, serving, learner } = page.status;
  document.getElementById("summary").textContent = [
    counted(items, "item"),
    `${learner.method} ${bits} bits`,
    serving.model ? `model ${serving.model}` : "no model yet",
  ].join(" · ");
  views[shown].told?.(page.status);
}

/** Tell that a report did not come, and when it is asked for again. */
function tellTrouble(error, wait, again) {
  const next = `Trying again in ${Math.round(wait / 1000)} s.`;
  connection.replaceChildren(notice("problem", error.message, next, again));
}

function askForToken(refused) {
  const dialog = document.getElementById("token-dialog");
  const input = document.getElementById("token-input");
  if (refused) {
    document.getElementById("token-why").textContent =
      "That token was not accepted. Check it and try again.";
  }
  input.value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener(
      "close",
      () => {
        keepToken(input.value);
        resolve();
      },
      { once: true },
    );
  });
}

onTokenNeeded(askForToken);
document.getElementById("token-dialog").addEventListener("cancel", (event) => {
  event.preventDefault(); // nothing works without
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the part after # names views here
  main.focus();
});
addEventListener("hashchange", route);
route();
// The view of what goes on asks for itself, and more often.
poll(() => (shown === "live" ? null : ask()), 2000, tellTrouble);
