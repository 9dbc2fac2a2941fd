// @ts-check
// A tree of JSON, of which only what is open is nodes.
import { copy, el, reveal } from "./dom.js";
import { size } from "./format.js";
import { Num, parse as parseTree } from "./value.js";

const firstLevels = 5, maxChildren = 200, maxString = 2000;

/** Parses JSON for a tree with the order of its members. A name that is there twice is an error. */
export { parseTree };

/** Parses JSON. Numbers that JavaScript cannot hold keep their digits. */
export function parse(text) {
  try {
    return JSON.parse(text, /** @type {any} */ ((_, value, context) =>
      typeof value === "number" && context?.source !== undefined && String(value) !== context.source ? new Num(context.source) : value));
  } catch (e) {
    if (e instanceof RangeError) return JSON.parse(text); // too deep for the function above
    throw e;
  }
}

const isContainer = (value) => typeof value === "object" && value !== null && !(value instanceof Num);

/** Shows a value. */
export function tree(value) {
  return el("div", { class: "json" }, line(undefined, value, 0));
}

/** @returns {HTMLElement} */
function line(name, value, level) {
  const label = name === undefined ? null : el("span", { class: "key" }, reveal(name), ": ");
  if (!isContainer(value)) return el("div", { class: "leaf" }, label, scalar(value));
  const entries = Array.isArray(value) ? value.map((v, i) => /** @type {[string, any]} */ ([String(i), v])) : value instanceof Map ? [...value] : Object.entries(value);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  if (entries.length === 0) return el("div", { class: "leaf" }, label, open + close);
  const inside = el("div", { class: "inside" });
  const details = el("details", { toggle: () => { if (details.open && !inside.childElementCount) more(inside, entries, 0, level); } },
    el("summary", {}, label, open, el("span", { class: "soft" }, ` ${entries.length} `), close), inside);
  if (level < firstLevels) {
    details.setAttribute("open", "");
    more(inside, entries, 0, level);
  }
  return details;
}

/** Adds the next entries. */
function more(inside, entries, from, level) {
  const to = Math.min(entries.length, from + maxChildren);
  inside.append(...entries.slice(from, to).map(([name, value]) => line(name, value, level + 1)));
  if (to === entries.length) return;
  const button = el("button", { class: "quiet", click: () => { button.remove(); more(inside, entries, to, level); } }, `${entries.length - to} more`);
  inside.append(button);
}

function scalar(value) {
  if (value instanceof Num) return el("span", { class: "number" }, value.text);
  if (typeof value !== "string") return el("span", { class: typeof value }, String(value));
  const quoted = (text) => reveal(JSON.stringify(text).replaceAll("\\n", "\n").replaceAll("\\t", "\t"));
  if (value.length <= maxString) return el("span", { class: "string" }, quoted(value));
  const span = el("span", { class: "string" }, quoted(value.slice(0, maxString)), "…");
  const all = el("button", { class: "quiet", click: () => { span.textContent = quoted(value); all.remove(); } }, `all ${size(value.length)}`);
  return el("span", {}, span, " ", all, " ", el("button", { class: "quiet", click: () => copy(value) }, "copy"));
}
