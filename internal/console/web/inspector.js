// @ts-check
// The panel at the right: one thing, whatever it is.
import { at, el, fill, redraw } from "./dom.js";

const panel = at("inspector");
let current = "";
let onClose = () => {};

/** Shows a thing. @param {string} id of the thing */
export function inspect(id, title, body, closed) {
  onClose = closed;
  const isNew = current !== id, scroll = isNew ? 0 : panel.scrollTop;
  current = id;
  (isNew ? fill : redraw)(panel, el("div", { class: "panel-head" }, el("h2", {}, title), el("button", { class: "quiet close", "aria-label": "Close", title: "Close (Esc)", click: () => close() }, "×")), body);
  panel.hidden = false;
  document.body.classList.add("inspecting");
  panel.scrollTop = scroll;
}

/** Ends the inspector without telling the screen. */
export function dismiss() {
  if (panel.hidden) return;
  panel.hidden = true;
  current = "";
  document.body.classList.remove("inspecting");
  fill(panel);
}

/** Closes the inspector. @returns {boolean} whether it was open */
export function close() {
  if (panel.hidden) return false;
  dismiss();
  onClose();
  return true;
}

export const isShown = (id) => current === id && !panel.hidden;

/** Facts as a list; those without a value are left out. */
export function facts(all) {
  return el("dl", { class: "facts" }, all.filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false)
    .map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/** Tabs as links. @param {Array<{text: string, href: string, isOn: boolean}>} all */
export function tabs(all) {
  return el("nav", { class: "tabs", "aria-label": "Parts" }, all.map((t) => el("a", { href: t.href, "aria-current": t.isOn ? "true" : undefined }, t.text)));
}
