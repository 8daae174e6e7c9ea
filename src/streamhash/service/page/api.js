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

async function request(path, { body, signal } = {}) {
  const token = sessionStorage.getItem(KEY);
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
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
    return request(path, { body, signal });
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

const item = (id) => `/api/items/${encodeURIComponent(id)}`;

export const api = {
  status: () => json("/api/status"),
  history: () => json("/api/history"),
  models: () => json("/api/models"),
  newest: (offset, limit) => json(`/api/items?offset=${offset}&limit=${limit}&newest=true`),
  item: (id, options) => json(item(id), options),
  itemsById: (ids, options) => json("/api/items/get", { body: { ids }, ...options }),
  image: async (id) => (await request(`${item(id)}/image`)).blob(),
  search: (body, options) => json("/api/search", { body, ...options }),
  compare: (body, options) => json("/api/compare", { body, ...options }),
  feedback: (body) => json("/api/feedback", { body }),
  refresh: () => json("/api/refresh", { body: { wait: false } }),
};
