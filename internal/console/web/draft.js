// @ts-check
// Changes of configuration files. dowel keeps the secrets: a text has a placeholder for each. It merges what
// the user and another program have changed, and says what a change would run.
import { get, post } from "./api.js";
import { ask, attempt, el, fill, oneLine, reveal, toast } from "./dom.js";
import { plural } from "./format.js";

const cancel = { value: "", text: "Cancel", kind: "quiet" };

const lineList = (lines) => el("pre", { class: "change", tabindex: "0", "aria-label": "Lines that change" }, lines.map((l) =>
  el("span", { class: l.removed ? "bad" : "ok" }, `${l.removed ? "−" : "+"} ${String(l.number).padStart(3)}  ${reveal(l.text.replace(/\n$/, ""))}\n`)));

/** What a change does. */
const effects = (o) => [
  o.problems?.map((p) => el("p", { class: "reason" }, reveal(p))),
  o.lines.length ? lineList(o.lines) : el("p", { class: "soft" }, "Nothing changes."),
  o.runs ? [el("h3", {}, "dowel would start"), el("ul", { class: "mono factlist" }, o.runs.map((r) => el("li", {}, reveal(r))))] : null,
  o.removed ? el("p", {}, "Removed: " + o.removed.map(oneLine).join(", ")) : null,
  o.leftovers?.map((text) => el("p", {}, reveal(text)))];

const conflictParts = (c) => [
  el("p", {}, c.hasOverlap ? "You and another program changed the same lines." : "Another program changed the file. Its changes and yours do not touch."),
  c.hunks.map((h) => el("dl", { class: "facts hunk" + (h.overlap ? " failing" : "") }, [["before", h.base], ["yours", h.mine], ["on disk", h.theirs]]
    .map(([name, text]) => [el("dt", {}, name), el("dd", {}, el("pre", {}, text ? reveal(text) : "—"))])))];

/**
 * Shows what a change does, asks, and saves it. The answer has the file as it was written, or the draft that
 * replaces one's own after a conflict.
 * @returns {Promise<{opened?: any, text?: string}|undefined>}
 */
export async function save(change) {
  const checked = await post("/v1/config/check", change);
  if (checked.conflict) {
    const { merged, hasOverlap } = checked.conflict;
    const answer = await ask("The file has changed on disk", el("div", {}, conflictParts(checked.conflict)), [cancel, { value: "take", text: "Take the file on disk" },
      { value: "mine", text: "Keep mine" }, { value: "merge", text: hasOverlap ? "Merge, then look" : "Merge", kind: "strong" }]);
    if (answer === "mine") return save({ ...change, overwrite: merged.hash });
    if (answer === "take") return { opened: await get("/v1/config/file?path=" + encodeURIComponent(merged.path)) };
    return answer === "merge" ? { opened: merged, text: merged.text } : undefined;
  }
  if (checked.isBroken || !checked.lines.length) {
    await ask(checked.isBroken ? "dowel cannot read this" : "Nothing to save", el("div", {}, effects(checked)), [{ value: "", text: "Back" }]);
    return undefined;
  }
  if (!await ask(`Save ${plural(checked.lines.length, "changed line")}?`, el("div", {}, effects(checked)), [cancel, { value: "save", text: "Save", kind: "strong" }])) return undefined;
  const saved = await post("/v1/config/save", change);
  if (!saved.written) return save(change); // it has changed in the meantime
  toast([saved.warning ?? "Saved: " + saved.path, ...saved.leftovers ?? []].join(". "), !!saved.warning);
  return { opened: saved.opened };
}

/** Makes single edits of a file. */
export const edit = (path, edits) => attempt(async () => {
  const { draft } = await get("/v1/config/file?path=" + encodeURIComponent(path));
  let result = await save({ draft, edits });
  while (result?.text) result = await save({ draft: result.opened.draft, text: result.text }); // it was merged
});

/** Asks for texts. @param {Array<[name: string, label: string, value?: string, tag?: string]>} fields */
export async function askFor(title, note, fields) {
  const inputs = fields.map(([name, , value, tag]) => { const input = el(tag ?? "input", { id: "ask-" + name, autocomplete: "off", spellcheck: "false" }); input.value = value ?? ""; return input; });
  const body = el("div", { class: "item-pane asked" }, fields.map(([name, label], i) => [el("label", { for: "ask-" + name }, label), inputs[i]]), note ? el("p", { class: "soft" }, note) : null);
  return await ask(title, body, [cancel, { value: "ok", text: "Next…", kind: "strong" }]) ? inputs.map((i) => i.value) : undefined;
}

// Editors by path. One with unsaved text stays while the user looks at other screens.
const editors = /** @type {Map<string, Editor>} */ (new Map());
addEventListener("beforeunload", (e) => { if ([...editors.values()].some((editor) => editor.isChanged)) e.preventDefault(); });

/** The editor of a file. */
export function editorOf(path, isReadOnly) {
  const known = editors.get(path);
  if (known?.isChanged) return known;
  const editor = new Editor(path, isReadOnly);
  editors.set(path, editor);
  return editor;
}

/** The text of a file, to be edited. */
export class Editor {
  node = el("section", { class: "editor", "aria-label": "Text of the file" });
  #area = el("textarea", { class: "raw", spellcheck: "false", "aria-label": "Text", input: () => this.#drawState() });
  #state = el("p", { class: "soft", role: "status" });
  #buttons = el("div", { class: "buttons" });
  #opened = /** @type {any} */ (null);

  constructor(path, isReadOnly) {
    this.path = path;
    this.isReadOnly = isReadOnly;
    this.#area.readOnly = isReadOnly;
    fill(this.node, el("h2", {}, oneLine(path)), this.#area, this.#state, this.#buttons);
    this.#open();
  }

  get isChanged() { return this.#opened && this.#area.value !== this.#opened.text; }

  /** Reads the file. Text that the user writes meanwhile stays. */
  #open() {
    const before = this.#area.value;
    return attempt(async () => {
      const opened = await get("/v1/config/file?path=" + encodeURIComponent(this.path));
      if (this.#area.value === before) this.#take(opened);
    });
  }

  /** @param {string} [merged] text that the file does not have yet */
  #take(opened, merged) {
    const text = (merged ?? opened.text).replace(/\r\n?/g, "\n"); // as a text area has it
    this.#opened = { ...opened, text: merged === undefined ? text : null };
    this.#area.value = text;
    this.#drawState();
  }

  /** Follows the file. @param {{hash?: string}|undefined} file as it is on disk */
  follow(file) {
    if (!this.#opened || (file?.hash ?? "") === (this.#opened.isNew ? "" : this.#opened.hash)) return;
    if (this.isChanged) this.#drawState("Another program has changed the file. Saving shows both changes. ");
    else this.#open();
  }

  #drawState(note = "") {
    fill(this.#state, note, this.isChanged ? "Not saved yet." : this.#opened?.isNew ? "This file does not exist yet. Saving makes it." : "As on disk. ⟨secret-1⟩ stands for a value that is not shown.");
    fill(this.#buttons, this.isReadOnly ? null : [
      el("button", { class: this.isChanged ? "strong" : "", click: () => this.#save() }, "Save…"),
      this.isChanged ? el("button", { class: "quiet", click: () => this.#open() }, "Discard my changes") : null]);
  }

  #save() {
    return attempt(async () => {
      const result = await save({ draft: this.#opened.draft, text: this.#area.value });
      if (result?.opened) this.#take(result.opened, result.text);
      else if (result) this.#open();
    });
  }
}
