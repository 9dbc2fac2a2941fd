// @ts-check
// The address holds the state of the page: the screen, what is selected, the filter.
import { prefix } from "./api.js";

/** The address of a screen. */
export function link(path, query = {}) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) q.set(name, value);
  const text = q.toString();
  return `${prefix}/${path}${text ? "?" + text : ""}`;
}

/** The screen that the address names, what is below it, and the query. */
export function here() {
  const [screen, ...path] = location.pathname.slice(prefix.length + 1).split("/").map(decode);
  return { screen: screen || "servers", path: path.filter(Boolean), query: new URLSearchParams(location.search) };
}

function decode(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

export const changes = new EventTarget();

/** Goes to an address. */
export function go(path, query, replace) {
  visit(link(path, query), replace);
}

export function visit(url, replace) {
  if (url !== location.pathname + location.search) history[replace ? "replaceState" : "pushState"](null, "", url);
  changes.dispatchEvent(new Event("change"));
}

/** Changes the query of the address, and keeps the rest. */
export function set(changed, replace) {
  const { screen, path, query } = here();
  const all = { ...Object.fromEntries(query), ...changed };
  go([screen, ...path.map(encodeURIComponent)].join("/"), all, replace);
}

addEventListener("popstate", () => changes.dispatchEvent(new Event("change")));
