// The page: whose items and which view are shown, what the top line says, and the question for a token.

import { api, keepToken, onTokenNeeded, useCollection } from "./api.js";
import { collectionsView } from "./collections.js";
import { compareView } from "./compare.js";
import { notice } from "./elements.js";
import { useDisplay } from "./items.js";
import { itemsView } from "./browse.js";
import { liveView } from "./live.js";
import { forgetPictures } from "./pictures.js";
import { poll } from "./polling.js";
import { searchView } from "./search.js";
import { counted } from "./format.js";

const main = document.getElementById("content");
const connection = document.getElementById("connection");
const crumb = document.getElementById("collection");
const VIEWS = { search: searchView, items: itemsView, live: liveView, compare: compareView };
const TITLES = { search: "Search", items: "Items", live: "Live", compare: "Compare" };

/** What all views share: the collections, the last status, and the way to ask for new ones. */
const page = {
  status: null,
  name: null, // of the collection that is shown
  collections: null, // what the service has, once that is known
  canCreate: false,
  mayWrite: false, // by the token, if there is one
  go: (view, parameters = {}) => (location.hash = address(view, parameters)),
  address,
  home: (name) => `#${encodeURIComponent(name)}/search`,
  list,
  ask,
  tellTrouble,
  get writable() {
    return page.mayWrite && page.status?.writable === true;
  },
};
const overview = collectionsView(page);
let views = {}; // of one collection
let shown = null; // the view

/** The address of a view of this collection; texts stay as they are, unless they look like JSON. */
function address(view, parameters = {}) {
  const pairs = Object.entries(parameters).map(([name, value]) => [name, written(value)]);
  const single = page.collections?.length === 1;
  const place = single || page.name === null ? view : `${encodeURIComponent(page.name)}/${view}`;
  return pairs.length ? `#${place}?${new URLSearchParams(pairs)}` : `#${place}`;
}

const written = (value) =>
  typeof value === "string" && read(value) === value ? value : JSON.stringify(value);

/** What an address says; texts that are no JSON are themselves, and so are all ids of texts. */
function read(text, name = "") {
  if (name === "id" && page.status?.ids === "strings" && !text.startsWith('"')) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Which collection and view the address names: #view, #collection/view or #collection. */
function wanted() {
  const [place, query] = location.hash.slice(1).split("?");
  const parts = place.split("/").map(decoded);
  const only = page.collections.length === 1 ? page.collections[0].name : null;
  const has = (name) => page.collections.some((each) => each.name === name);
  let [name, view] = parts.length > 1 ? parts : [null, parts[0]];
  if (name === null && !Object.hasOwn(VIEWS, view) && has(view)) [name, view] = [view, "search"];
  if (name === null && view !== "collections") name = only;
  return {
    name: has(name) ? name : null,
    missing: name !== null && !has(name) ? name : null,
    view: Object.hasOwn(VIEWS, view) ? view : "search",
    query,
  };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function route() {
  if (page.collections === null) return;
  const { name, missing, view, query } = wanted();
  if (name === null) return showOverview(missing);
  if (name !== page.name) await change(name);
  if (name !== page.name) return; // another was chosen meanwhile
  const parameters = Object.create(null);
  for (const [key, value] of new URLSearchParams(query)) parameters[key] = read(value, key);
  const moved = shown !== views[view];
  if (moved) put(views[view], view);
  views[view].show(parameters, moved);
}

/** Show another collection: its views begin anew. */
async function change(name) {
  shown?.hide();
  shown = null;
  page.name = name;
  page.status = null;
  useCollection(name);
  forgetPictures();
  views = Object.fromEntries(Object.entries(VIEWS).map(([view, make]) => [view, make(page)]));
  try {
    await ask(); // what ids are, and how items are shown
  } catch (error) {
    if (page.name === name) tellTrouble(error, 2000, route);
  }
}

function showOverview(missing) {
  const moved = shown !== overview;
  page.name = null;
  page.status = null;
  if (moved) put(overview, null);
  overview.show({ missing }, moved);
}

function put(view, name) {
  const isFirst = shown === null && document.title === "streamhash";
  shown?.hide();
  main.replaceChildren(connection, view.element);
  const several = page.collections.length > 1;
  document.title = [
    name === null ? "Collections" : TITLES[name],
    ...(several && page.name !== null ? [page.name] : []),
    "streamhash",
  ].join(" · ");
  document.body.classList.toggle("overview", name === null);
  crumb.textContent = page.name ?? "";
  crumb.hidden = page.name === null;
  if (name === null) document.getElementById("summary").textContent = "";
  for (const link of document.querySelectorAll("[data-view]")) {
    link.href = address(link.dataset.view);
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  shown = view;
  // The heading tells listeners where they are; at the first load the browser does.
  if (isFirst) return;
  view.element.querySelector("h1").focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** Ask which collections there are. */
async function list() {
  const { collections, can_create: canCreate, may_write: mayWrite } = await api.collections();
  const before = JSON.stringify(page.collections?.map(({ name }) => name));
  Object.assign(page, { collections, canCreate, mayWrite });
  connection.replaceChildren();
  if (JSON.stringify(collections.map(({ name }) => name)) !== before) await route();
}

/** Ask how the collection does, and tell whoever shows it. */
async function ask() {
  if (page.name === null) return;
  const name = page.name;
  const status = await api.status();
  if (page.name !== name) return;
  page.status = status;
  connection.replaceChildren();
  useDisplay(status.display);
  const { items, bits, serving, learner } = status;
  document.getElementById("summary").textContent = [
    counted(items, "item"),
    `${learner.method} ${bits} bits`,
    serving.model ? `model ${serving.model}` : "no model yet",
  ].join(" · ");
  shown?.told?.(status);
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
// The views of what goes on ask for themselves, and more often.
poll(
  () => {
    if (page.collections === null) return list();
    return shown === overview || shown === views.live ? null : ask();
  },
  2000,
  tellTrouble,
);
