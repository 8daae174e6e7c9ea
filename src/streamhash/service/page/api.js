// Talking to the service: one function a question, one kind of error, and the token.

import { sentence } from "./format.js";

const KEY = "streamhash-token";
const PATIENCE = 60_000; // milliseconds

/** An answer that is no success, in plain words. */
export class ServiceError extends Error {
  constructor(message, status, code = null, said = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.said = said; // by the service, in full
  }
}

const WORDS = {
  0: "The service does not answer. Is it still running?",
  401: "This token was not accepted.",
  403: "The token you gave may read, but this needs one that may write.",
  404: "The service has nothing of that name.",
  413: "That is more than the service takes at once. Try a smaller file.",
  429: "The service is busy. Try again in a moment.",
  503: "The service is busy or starting. Try again in a moment.",
};

let askForToken = null; // a function that resolves once the person has given a token
let asking = null; // its promise while the dialog is open: many requests may wait for one answer

export function onTokenNeeded(ask) {
  askForToken = ask;
}

export function keepToken(token) {
  sessionStorage.setItem(KEY, token);
}

let of = "/api"; // begins the addresses of the collection that is shown

export function useCollection(name) {
  of = `/api/collections/${encodeURIComponent(name)}`;
}

/** Ask; a body is sent as JSON, a file as it is. */
async function request(path, { body, file, method, signal } = {}) {
  const token = sessionStorage.getItem(KEY);
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (file !== undefined) headers["Content-Type"] = "application/octet-stream";
  const content = file ?? (body === undefined ? undefined : JSON.stringify(body));
  let answer;
  try {
    answer = await fetch(path, {
      method: method ?? (content === undefined ? "GET" : "POST"),
      headers,
      body: content,
      signal: AbortSignal.any([AbortSignal.timeout(PATIENCE), ...(signal ? [signal] : [])]),
      cache: "no-store",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ServiceError(WORDS[0], 0);
  }
  if (answer.status === 401 && askForToken) {
    if (sessionStorage.getItem(KEY) === token) {
      asking ??= askForToken(token !== null).finally(() => (asking = null));
      await asking;
    }
    return request(path, { body, file, method, signal });
  }
  if (!answer.ok) throw await problem(answer);
  return answer;
}

async function problem(answer) {
  let told = null;
  try {
    told = (await answer.json()).error;
  } catch {
    // Not the service's own shape of errors: a proxy's page, perhaps.
  }
  const known = WORDS[answer.status];
  const fallback = known ?? `The service answered with error ${answer.status}.`;
  // Refusals for want of rights or room are better said by the page itself.
  const useOwn = [403, 413, 429].includes(answer.status) || !told?.message;
  const text = useOwn ? fallback : sentence(told.message);
  return new ServiceError(text, answer.status, told?.code, told?.message);
}

async function json(path, options) {
  const answer = await request(path, options);
  return answer.json();
}

const item = (id) => `${of}/items/${encodeURIComponent(id)}`;
const named = (name) => `/api/collections/${encodeURIComponent(name)}`;
const given = (parameters) =>
  new URLSearchParams(Object.entries(parameters).filter(([, value]) => value || value === 0));

export const api = {
  collections: () => json("/api/collections"),
  create: (body) => json("/api/collections", { body }),
  drop: (name) => json(named(name), { method: "DELETE" }),
  status: () => json(`${of}/status`),
  history: () => json(`${of}/history`),
  models: () => json(`${of}/models`),
  newest: (offset, limit) => json(`${of}/items?offset=${offset}&limit=${limit}&newest=true`),
  list: (parameters, options) => json(`${of}/items?${given(parameters)}`, options),
  labels: () => json(`${of}/labels`),
  item: (id, options) => json(item(id), options),
  change: (id, body) => json(item(id), { method: "PATCH", body }),
  put: (id, body) => json(item(id), { method: "PUT", body }),
  add: (body) => json(`${of}/items`, { body }),
  remove: (id) => json(item(id), { method: "DELETE" }),
  addFile: (file, parameters) => json(`${of}/files?${given(parameters)}`, { file }),
  exported: async (parameters) => (await request(`${of}/export?${given(parameters)}`)).blob(),
  setDisplay: (body) => json(`${of}/display`, { method: "PUT", body }),
  itemsById: (ids, options) => json(`${of}/items/get`, { body: { ids }, ...options }),
  image: async (id) => (await request(`${item(id)}/image`)).blob(),
  search: (body, options) => json(`${of}/search`, { body, ...options }),
  compare: (body, options) => json(`${of}/compare`, { body, ...options }),
  quality: (seed, options) => json(`${of}/quality?seed=${seed}`, options),
  feedback: (body) => json(`${of}/feedback`, { body }),
  refresh: () => json(`${of}/refresh`, { body: { wait: false } }),
};
