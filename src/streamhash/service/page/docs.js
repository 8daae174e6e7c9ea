// Every address of the service, as /openapi.json describes it, and a way to try each.

import { el, notice, waiting } from "./elements.js";

const KEY = "streamhash-token"; // as the other views keep it
const LONGEST = 20_000; // characters of an answer that are shown
const GROUPS = [
  ["Collections", /^\/api\/collections(\/\{name\})?$/],
  ["Search", /\/(search|encode|predict|compare)$/],
  ["Items", /\/(items|labels|metadata|feedback|classes|export)\b/],
  ["Models", /\/(status|history|models|refresh|revert|display)$/],
  ["The service", /./],
];
const place = document.getElementById("addresses");

async function show() {
  place.replaceChildren(waiting("Reading the description"));
  try {
    const answer = await fetch("/openapi.json");
    const said = await answer.json();
    document.getElementById("lead").textContent = said.info.description;
    place.replaceChildren(...groups(said));
    open();
  } catch {
    place.replaceChildren(
      notice("problem", "The description could not be read.", "Is the service still running?", show),
    );
  }
}

/** Open what the part of the address after # names. */
function open() {
  const wanted = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (wanted?.tagName !== "DETAILS") return;
  wanted.open = true;
  wanted.scrollIntoView({ block: "start" });
}

function groups({ paths, components }) {
  const all = Object.entries(paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).map(([verb, facts]) => ({ path, verb, facts })),
  );
  const groupOf = ({ path }) => GROUPS.find(([, form]) => form.test(path))[0];
  return GROUPS.map(([name]) => {
    const own = all.filter((each) => groupOf(each) === name);
    if (own.length === 0) return "";
    return el(
      "section",
      { class: "group" },
      el("h2", {}, name),
      own.map((each) => operation(each, components.schemas)),
    );
  });
}

function operation({ path, verb, facts }, schemas) {
  const id = `${verb}${path}`;
  const body = el("div", { class: "operation-body" });
  const element = el(
    "details",
    { class: "operation", id, ontoggle: () => body.childElementCount || fill() },
    el(
      "summary",
      {},
      el("span", { class: `verb ${verb}` }, verb.toUpperCase()),
      el("span", { class: "path" }, path),
      el("span", { class: "quiet" }, facts.description ?? facts.summary),
    ),
    body,
  );

  function fill() {
    const said = facts.requestBody?.content?.["application/json"]?.schema;
    const answer = facts.responses[200] ?? facts.responses[201];
    const answered = answer?.content?.["application/json"]?.schema;
    const refusals = Object.keys(facts.responses).filter((status) => status >= "400");
    body.replaceChildren(
      ...[
        fields(
          "In the address",
          (facts.parameters ?? []).map((each) => [
            each.name,
            typeOf(each.schema, schemas),
            each.required ? "" : plain(each.schema.default),
            each.description ?? "",
          ]),
        ),
        said ? fields("Body", rows(resolve(said, schemas), schemas)) : null,
        answered ? fields("Answer", rows(resolve(answered, schemas), schemas), false) : null,
        el("p", { class: "quiet" }, `Errors: ${refusals.join(", ")}.`),
        attempt({ path, verb, facts, said }, schemas),
      ].filter(Boolean),
    );
  }

  return element;
}

const resolve = (schema, schemas) =>
  schema?.$ref ? (schemas[schema.$ref.split("/").pop()] ?? {}) : (schema ?? {});

function rows(schema, schemas) {
  if (schema.type === "array")
    return rows(resolve(schema.items, schemas), schemas).map(([name, ...rest]) => [
      `[].${name}`,
      ...rest,
    ]);
  return Object.entries(schema.properties ?? {}).map(([name, each]) => [
    name,
    typeOf(each, schemas),
    schema.required?.includes(name) ? "" : plain(each.default),
    each.description ?? "",
  ]);
}

function typeOf(schema, schemas) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  const several = schema.anyOf ?? schema.oneOf;
  if (several) return [...new Set(several.map((each) => typeOf(each, schemas)))].join(" | ");
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") return `[${typeOf(schema.items, schemas)}]`;
  return schema.type ?? "any";
}

const plain = (value) => (value === undefined ? "" : JSON.stringify(value));

function fields(title, all, withDefaults = true) {
  if (all.length === 0) return null;
  const head = ["Name", "Type", ...(withDefaults ? ["By default"] : []), "Meaning"];
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
    el("h3", {}, title),
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))),
      el(
        "tbody",
        {},
        all.map(([name, type, usual, meaning]) =>
          el(
            "tr",
            {},
            [name, type, ...(withDefaults ? [usual] : []), meaning].map((text) =>
              el("td", {}, text),
            ),
          ),
        ),
      ),
    ),
  );
}

/** A form that sends the request, and shows what is answered. */
function attempt({ path, verb, facts, said }, schemas) {
  const inputs = Object.fromEntries(
    (facts.parameters ?? []).map((each) => [
      each.name,
      el("input", {
        name: each.name,
        value: each.example ?? each.schema?.examples?.[0] ?? each.schema?.default ?? "",
        autocomplete: "off",
      }),
    ]),
  );
  const text = said
    ? el(
        "textarea",
        { spellcheck: "false" },
        JSON.stringify(example(resolve(said, schemas), schemas), null, 1),
      )
    : null;
  const shown = el("pre", { hidden: true, tabindex: "0", "aria-label": "Answer" });

  async function send(event) {
    event.preventDefault();
    const query = new URLSearchParams();
    let address = path;
    for (const { name, in: where } of facts.parameters ?? []) {
      if (where === "path") {
        address = address.replace(`{${name}}`, encodeURIComponent(inputs[name].value));
      } else if (inputs[name].value !== "") query.set(name, inputs[name].value);
    }
    if (query.size) address += `?${query}`;
    const token = sessionStorage.getItem(KEY);
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    if (text) headers["Content-Type"] = "application/json";
    shown.hidden = false;
    shown.textContent = "…";
    try {
      const answer = await fetch(address, {
        method: verb.toUpperCase(),
        headers,
        body: text?.value,
      });
      shown.textContent = `${verb.toUpperCase()} ${address}\n${answer.status}\n${await read(answer)}`;
    } catch {
      shown.textContent = "The service does not answer.";
    }
  }

  return el(
    "form",
    { class: "try", onsubmit: send },
    Object.entries(inputs).map(([name, input]) =>
      el("label", { class: "field" }, el("span", {}, name), input),
    ),
    text ? el("label", { class: "field" }, el("span", {}, "Body"), text) : null,
    el("button", { type: "submit" }, `Send this ${verb.toUpperCase()}`),
    shown,
  );
}

async function read(answer) {
  const kind = answer.headers.get("content-type") ?? "";
  const text = kind.startsWith("image/") ? `(${kind})` : await answer.text();
  const pretty = kind.startsWith("application/json") ? JSON.stringify(JSON.parse(text), null, 1) : text;
  return pretty.length > LONGEST ? `${pretty.slice(0, LONGEST)}\n…` : pretty;
}

/** A body to begin with: what must be there, with the description's examples. */
function example(schema, schemas) {
  if (schema.$ref) return example(resolve(schema, schemas), schemas);
  if (schema.examples) return schema.examples[0];
  if (schema.anyOf) return example(schema.anyOf[0], schemas);
  if (schema.type === "array") return [example(schema.items ?? {}, schemas)];
  if (schema.type === "integer" || schema.type === "number") return schema.default ?? 1;
  if (schema.type === "boolean") return schema.default ?? true;
  if (schema.type === "string") return schema.default ?? "text";
  const wanted = schema.required ?? schema.oneOf?.[0]?.required ?? [];
  return Object.fromEntries(
    wanted.map((name) => [name, example(schema.properties[name] ?? {}, schemas)]),
  );
}

addEventListener("hashchange", open);
show();
