// @ts-check
// Nodes are made here and nowhere else. Text from servers is only ever text.

/**
 * Makes an element. A property that is a function listens to the event of its name.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...(Node|string|number|null|undefined|false|Array<any>)} children
 * @returns {any} an element of its own type
 */
export function el(tag, props, ...children) {
  const node = document.createElement(tag);
  if (tag === "button") node.setAttribute("type", "button");
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else if (name === "data") Object.assign(node.dataset, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...flat(children));
  return node;
}

/** @returns {Array<Node|string>} */
function flat(children) {
  return children.flat(9).filter((c) => c !== null && c !== undefined && c !== false).map((c) => (c instanceof Node ? c : String(c)));
}

/** Replaces the children of a node. */
export function fill(node, ...children) {
  waiting.delete(node);
  node.replaceChildren(...flat(children));
}

/** Focuses the first element of a selector. */
export function focusOn(node, selector) { /** @type {HTMLElement|null} */ (node.querySelector(selector))?.focus(); }

// A browser clicks an element that is both pressed and released. A redraw in between would replace it, and the click would be lost.
let pressed = /** @type {Node|null} */ (null);
const waiting = new Map(); // the children for nodes whose redraw waits
addEventListener("pointerdown", (e) => { pressed = /** @type {Node} */ (e.target); }, true);
addEventListener("click", () => { pressed = null; }, true); // what listens to the click may redraw
for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => setTimeout(onRelease), true); // the click comes first

function onRelease() {
  pressed = null;
  for (const [node, children] of waiting) redraw(node, ...children);
}

/** Replaces the children of a node, when nothing in it is pressed. The focus stays on the element with the same key. */
export function redraw(node, ...children) {
  if (pressed && node.contains(pressed)) {
    waiting.set(node, children);
    return;
  }
  const key = /** @type {HTMLElement} */ (document.activeElement)?.dataset?.key;
  fill(node, ...children);
  if (key) focusOn(node, `[data-key="${CSS.escape(key)}"]`);
}

/** Moves the focus along the elements of a selector. */
export function moveFocus(node, selector, by) {
  const all = /** @type {HTMLElement[]} */ ([...node.querySelectorAll(selector)]), i = all.findIndex((a) => a.contains(document.activeElement));
  const from = i >= 0 ? i : all.findIndex((a) => a.hasAttribute("aria-current"));
  all[Math.min(all.length - 1, Math.max(0, from + by))]?.focus();
}

/** Text of which the beginning is shown first. @param {string} name of its class */
export function cutText(name, text, short) {
  const p = el("p", { class: name }, reveal(text.slice(0, short)));
  if (text.length <= short) return p;
  const more = el("button", { class: "quiet", click: () => { p.textContent = reveal(text.slice(0, 20_000)); more.remove(); } }, "… all of it");
  return [p, more];
}

/** Details that are made when they are opened. @param {string} name of their class */
export function later(name, summary, make) {
  const details = el("details", { class: name, toggle: () => { if (details.open && details.childElementCount === 1) details.append(...[make()].flat()); } }, el("summary", {}, summary));
  return details;
}

/** The sign of a state. */
export const peg = (glyph, kind) => el("span", { class: "peg " + kind, "aria-hidden": "true" }, glyph);

/** The text of an error. */
export const reasonOf = (e) => /** @type {Error} */ (e).message;

/** Does something, and shows its error. */
export async function attempt(action) {
  try { return await action(); } catch (e) { toast(reasonOf(e), true); }
}

/** An address, of which the site is seen first. */
export function webAddress(text) {
  const url = URL.parse(text);
  return el("p", { class: "mono url" }, url ? [url.protocol, url.host ? "//" : "", reveal(url.username && url.username + "@"), el("strong", {}, reveal(url.host)), reveal(url.pathname + url.search + url.hash)] : reveal(text));
}

export const at = (id) => document.getElementById(id);

// Characters that draw nothing, move the cursor, or change the direction of other text.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** Shows hidden characters, so that text cannot look like other text. */
export function reveal(text) {
  return String(text ?? "").replace(hidden, (c) => (c === "\u001b" ? "␛" : `⟨${c.charCodeAt(0).toString(16)}⟩`));
}

/** Returns text as one line. */
export function oneLine(text) {
  return reveal(text).replace(/[\n\t]+/g, " ");
}

/** A code that a click copies. */
export function command(text) {
  return el("button", { class: "command", title: "Copy", click: () => copy(text) }, el("code", {}, text));
}

/** Copies text, also without a secure context. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { class: "sr" }, text);
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast("Copied");
}

let toastTimer = 0;
/** Shows a short message. */
export function toast(text, isError) {
  const node = at("toast");
  node.textContent = oneLine(text);
  node.className = isError ? "shown bad" : "shown";
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (node.className = ""), isError ? 8000 : 1600);
}

let endDialog = /** @type {(() => void)|null} */ (null);

/** Closes the dialog that is open, as the user does without an answer. */
export const closeDialog = () => endDialog?.();

/**
 * Asks in a dialog, in place of one that is open. @returns {Promise<string>} the value of the button, or "" if it was closed.
 * @param {string} title @param {any} body @param {Array<{value: string, text: string, kind?: string}>} buttons
 */
export function ask(title, body, buttons) {
  const dialog = at("dialog");
  closeDialog();
  dialog.setAttribute("aria-labelledby", "dialog-title");
  return new Promise((resolve) => {
    const answer = (value) => {
      dialog.removeEventListener("close", onClose);
      endDialog = null;
      dialog.close();
      resolve(value);
    };
    const onClose = () => { if (!dialog.open) answer(""); }; // else it is the late event of the dialog before
    endDialog = () => answer("");
    fill(dialog, el("h2", { id: "dialog-title" }, oneLine(title)), body,
      el("div", { class: "buttons" }, buttons.map((b) => el("button", { class: b.kind ?? "", click: () => answer(b.value) }, b.text))));
    dialog.addEventListener("close", onClose);
    dialog.showModal();
  });
}
