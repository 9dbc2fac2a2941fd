// @ts-check
// Requests to the API. The token is in the page's storage, which belongs to this origin, and goes into the
// Authorization field of each request. There are no cookies.

const key = "dowel.token";
export const prefix = document.body.dataset.prefix ?? "/console";
const api = prefix + "/api";

/** Whether the console belongs to another program than dowel, which has commands of its own. */
export const isEmbedded = document.body.dataset.program === "other";

/** The error of a request without a valid token. */
export class LoggedOut extends Error {}

/** The moment whose state the page shows, or "" for now. */
export const moment = () => new URLSearchParams(location.search).get("at") ?? "";

/** The time that the page shows, in milliseconds. */
export const nowShown = () => Date.parse(moment()) || Date.now();

/** Whether a record is one of the time that the page shows. */
export const isShownAt = (time) => !moment() || Date.parse(time) <= nowShown();

const past = /^\/v1\/(status|asks|config|catalog|item|clients)(\?|$)/; // what dowel keeps as of earlier moments
const asOf = (path) => (moment() && past.test(path) ? `${path}${path.includes("?") ? "&" : "?"}at=${encodeURIComponent(moment())}` : path);

export const session = {
  get token() { return localStorage.getItem(key) ?? ""; },
  /** Whether this page may ask for data, as far as it knows. */
  get isOpen() { return this.token !== "" || document.body.dataset.login === "own"; },
  /** Whether nothing can be changed: by a choice of the user, or since the page shows the past. */
  get readOnly() { return document.body.dataset.reads === "true" || moment() !== ""; },
  forget() { localStorage.removeItem(key); },
};

/** Exchanges the ticket in the address for a token, and removes it from the address. */
export async function logIn() {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("login");
  if (!ticket) return;
  history.replaceState(null, "", location.pathname + location.search);
  const answer = await fetch(api + "/login", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ticket }) });
  const result = await answer.json();
  if (!answer.ok) throw new LoggedOut(result.error);
  localStorage.setItem(key, result.token);
}

async function send(path, init = {}) {
  const answer = await fetch(api + path, { ...init, cache: "no-store", headers: { Authorization: "Bearer " + session.token, ...init.headers } });
  if (answer.ok) return answer;
  let reason = `dowel answered with ${answer.status}`;
  try { reason = (await answer.json()).error || reason; } catch { /* no JSON */ }
  throw answer.status === 401 ? new LoggedOut(reason) : new Error(reason);
}

/** @param {string} path @param {RequestInit} [init] */
export const get = async (path, init) => (await send(asOf(path), init)).json();

/** The text of a document, in which numbers keep their digits. */
export const getText = async (path) => (await send(path)).text();

export async function post(path, body = {}) {
  return (await send(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })).json();
}

/**
 * Passes the lines of an answer to a function, in batches as they arrive.
 * @param {string} path @param {RequestInit} init @param {(lines: any[]) => void} take
 */
export async function lines(path, init, take) {
  const answer = await send(path, init);
  const reader = /** @type {ReadableStream} */ (answer.body).pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop() ?? "";
    if (parts.length) take(parts.filter(Boolean).map((line) => JSON.parse(line)));
  }
}

export const postLines = (path, take, signal, body = {}) =>
  lines(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal }, take);

export const serverPath = (name) => "/v1/servers/" + encodeURIComponent(name);
