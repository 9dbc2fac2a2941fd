// @ts-check
// The address holds the state of the page: the screen, what is selected, the filter.
import { moment, prefix } from "./api.js";

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

/** Goes to an address, in the time that the page shows. */
export function visit(url, replace) {
  const to = new URL(url, location.href);
  if (moment() && !to.searchParams.has("at")) to.searchParams.set("at", moment());
  change(to.pathname + to.search, replace);
}

/** Shows the same screen as of a moment; "" is now. */
export function travel(time) {
  const to = new URL(location.href);
  to.searchParams.delete("at");
  if (time) to.searchParams.set("at", time);
  change(to.pathname + to.search, false);
}

function change(url, replace) {
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
