// @ts-check
// A form, drawn from the model that dowel makes of a schema. Absent, empty and null are different values.
import { el, fill, focusOn, oneLine, reveal } from "./dom.js";
import { Num, isNumber, parse, write } from "./value.js";

/**
 * @typedef {any} Field of internal/schemaform
 * @typedef {{get: () => any, set: (value: any) => void, path: string, field: Field, label: string, inRow?: boolean, become?: (field: Field) => void, typed?: () => void}} Slot
 * a place for a value, whose lazy field can become another one
 */

let ids = 0;
const newID = () => `field-${++ids}`;

/** A JSON pointer. */
const below = (path, name) => `${path}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;

/** The value that a new field has: undefined is absent. */
export function initial(f, must) {
  if (!must) return undefined;
  if (f.default !== undefined) return parse(JSON.stringify(f.default));
  if (f.kind === "choice" && f.choices.length === 1) return parse(JSON.stringify(f.choices[0].value));
  if (f.kind === "object") {
    const map = new Map();
    for (const p of f.properties ?? []) {
      const value = initial(p, p.required);
      if (value !== undefined) map.set(p.name, value);
    }
    return map;
  }
  if (f.kind === "array") return [...(f.tuple ?? []), ...Array(Math.max(0, (f.minItems ?? 0) - (f.tuple?.length ?? 0))).fill(f.items ?? {})].map(seed);
  if (f.kind === "variants") return initial(f.variants[0], true);
  return undefined;
}

/** A value for an item of a list, which cannot be absent. */
function seed(f) {
  const value = initial(f, true);
  if (value !== undefined) return value;
  switch (f.kind) {
    case "string": return "";
    case "boolean": return false;
    case "number": case "integer": return new Num("0");
    case "choice": return f.choices.length ? parse(JSON.stringify(f.choices[0].value)) : null;
    case "variants": return seed(f.variants[0]);
  }
  return null;
}

/** How well a value fits a field, 0 for not at all. @returns {number} */
function fit(f, v) {
  switch (f.kind) {
    case "string": return typeof v === "string" ? 2 : 0;
    case "number": return v instanceof Num ? 2 : 0;
    case "integer": return v instanceof Num ? (/[.eE]/.test(v.text) ? 0 : 3) : 0;
    case "boolean": return typeof v === "boolean" ? 2 : 0;
    case "null": return v === null ? 2 : 0;
    case "choice": return f.choices.some((c) => JSON.stringify(c.value) === write(v)) ? 3 : 0;
    case "array": return Array.isArray(v) ? 2 : 0;
    case "variants": return Math.max(0, ...f.variants.map((o) => fit(o, v)));
    case "object": {
      if (!(v instanceof Map)) return 0;
      let score = 2;
      for (const p of f.properties ?? []) {
        if (!v.has(p.name)) { if (p.required) score--; } else score += fit(p, v.get(p.name)) > 0 ? 2 : -3;
      }
      return Math.max(score, 0.1);
    }
    case "any": case "lazy": return 1;
  }
  return 0;
}

const typeWords = { string: "text", boolean: "yes or no", any: "JSON", choice: "", variants: "", object: "", array: "list", never: "no value allowed", lazy: "" };

const maxSuggestions = 10;

export class Form {
  node = el("div", { class: "form" });
  #issues = new Map();

  /**
   * @param {Field} field @param {any} value
   * @param {{changed: () => void, open: (at: string[]) => Promise<Field>}} on
   */
  constructor(field, value, on) {
    this.field = field;
    this.value = value;
    this.on = on;
    this.draw();
  }

  /** The value as JSON. */
  get text() { return write(this.value); }

  /** Draws the whole form. */
  draw(value = this.value) {
    this.value = value;
    fill(this.node, this.#control({ field: this.field, path: "", label: "", get: () => this.value, set: (v) => { this.value = v; this.on.changed(); } }));
    this.#drawIssues();
  }

  /** Shows the faults of the value. @returns {string[]} the ones without a field */
  show(all) {
    const issues = all.map((i) => ({ ...i, path: this.#placeOf(i) }));
    this.#issues = new Map([...Map.groupBy(issues, (i) => i.path)].map(([path, all]) => [path, all.map((i) => i.message)]));
    return this.#drawIssues();
  }

  /** The path of a fault; that of the property where one is missing. */
  #placeOf({ path, message }) {
    const name = /^missing required property (".*")$/.exec(message)?.[1], at = name ? below(path, JSON.parse(name)) : path;
    return this.node.querySelector(`.issue[data-path="${CSS.escape(at)}"]`) ? at : path;
  }

  #drawIssues() {
    const rest = new Map(this.#issues);
    for (const node of /** @type {NodeListOf<HTMLElement>} */ (this.node.querySelectorAll(".issue"))) {
      const found = this.#issues.get(node.dataset.path ?? "") ?? [];
      node.textContent = found.map((m) => oneLine(m)).join("; ");
      rest.delete(node.dataset.path ?? "");
      const input = node.parentElement?.querySelector(":scope > .control > textarea, :scope > .control > input, :scope > .control > select");
      if (found.length) input?.setAttribute("aria-invalid", "true");
      else input?.removeAttribute("aria-invalid");
    }
    return [...rest].flatMap(([path, all]) => all.map((m) => (path ? path + ": " : "") + m));
  }

  /** A field with its name, state, control and fault. @returns {HTMLElement} */
  #row(s) {
    const node = el("div", { class: "field kind-" + s.field.kind });
    let slot = s;
    const draw = () => this.#fillRow(node, { ...slot, become: (field) => { slot = { ...slot, field }; draw(); this.#drawIssues(); } }, draw);
    draw();
    return node;
  }

  #fillRow(node, s, redraw) {
    const f = s.field, id = newID(), value = s.get(), isAbsent = value === undefined;
    const again = (v) => {
      s.set(v);
      redraw();
      this.#drawIssues();
      focusOn(node, ".control textarea, .control input, .control select, .control button, .states button");
    };
    const state = (text, v) => el("button", { class: "quiet", "aria-label": `${s.label}: ${text}`, click: () => again(v) }, text);
    const fillsItself = ["boolean", "choice", "null"].includes(f.kind);
    const isStructure = ["object", "array", "variants", "lazy"].includes(f.kind);
    const states = el("span", { class: "states" });
    const drawStates = () => {
      const now = s.get(), isOut = now === undefined;
      const word = now === null ? "null" : now === "" ? "empty" : isOut && !fillsItself ? "absent" : "";
      fill(states, word ? el("span", { class: "word" }, word) : null, fillsItself ? null : [
        isOut && f.kind === "string" ? state("empty", "") : null,
        isStructure && f.kind !== "lazy" && (isOut || now === null) ? state("fill in", initial(f, true) ?? seed(f)) : null,
        f.nullable && now !== null ? state("null", null) : null,
        !isOut && !s.inRow ? state("leave out", undefined) : null]);
    };
    drawStates();
    s.typed = drawStates;
    const about = [typeWords[f.kind] ?? f.kind, f.format, f.rules, f.default !== undefined ? `default ${JSON.stringify(f.default)}` : ""].filter(Boolean).join(" · ");
    const isDirect = !isStructure && !fillsItself && f.kind !== "never";
    fill(node,
      el("div", { class: "field-head" }, el(isDirect ? "label" : "span", { for: isDirect ? id : undefined, class: "field-name", id: id + "-name" }, oneLine(s.label), f.required ? el("b", { title: "required", "aria-label": "required" }, "*") : null),
        f.title && f.title !== s.label ? el("span", { class: "soft" }, oneLine(f.title)) : null, about ? el("span", { class: "soft about" }, oneLine(about)) : null,
        states),
      f.description ? el("p", { class: "field-about", id: id + "-about" }, reveal(f.description.length > 400 ? f.description.slice(0, 400) + "…" : f.description)) : null,
      isStructure && (isAbsent || value === null) && f.kind !== "lazy" ? null : el("div", { class: "control" }, this.#control(s, id, redraw)),
      el("p", { class: "issue bad", id: id + "-issue", "aria-live": "polite", data: { path: s.path } }));
  }

  #control(s, id = newID(), redraw = () => this.draw()) {
    switch (s.field.kind) {
      case "string": return this.#text(s, id);
      case "number": case "integer": return this.#number(s, id);
      case "boolean": return this.#pick(s, id, [[true, "true"], [false, "false"]]);
      case "null": return this.#pick(s, id, []);
      case "choice": return this.#pick(s, id, s.field.choices.map((c) => [parse(JSON.stringify(c.value)), c.title || (typeof c.value === "string" ? c.value : JSON.stringify(c.value))]));
      case "object": return this.#object(s, redraw);
      case "array": return this.#array(s, redraw);
      case "variants": return this.#variants(s, id, redraw);
      case "lazy": return this.#lazy(s);
      case "never": return null;
    }
    return this.#json(s, id);
  }

  #input(s, id, text, read, props) {
    const example = s.field.examples?.[0];
    const input = el("textarea", { id, rows: 1, spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-describedby": `${id}-about ${id}-issue`, "aria-required": s.field.required ? "true" : undefined,
      placeholder: example === undefined ? undefined : `such as ${typeof example === "string" ? example : JSON.stringify(example)}`, ...props,
      input: () => {
        s.set(read(input.value));
        s.typed?.();
      } });
    input.value = text;
    return input;
  }

  #text(s, id) {
    const value = s.get();
    const input = this.#input(s, id, typeof value === "string" ? value : value === undefined || value === null ? "" : write(value), (text) => (text === "" && !s.inRow ? undefined : text));
    return this.on.complete ? [input, this.#suggestions(s, input)] : input;
  }

  /** Values that the server proposes for an argument while it is typed. */
  #suggestions(s, input) {
    const node = el("div", { class: "suggestions", role: "group", "aria-label": `Suggestions for ${s.label}` });
    let timer = 0;
    const load = async () => {
      const text = input.value, values = await this.on.complete?.(s.label, text) ?? [];
      if (text !== input.value) return;
      fill(node, values.filter((v) => v !== text).slice(0, maxSuggestions).map((v) => el("button", { class: "quiet", click: () => {
        input.value = v;
        input.dispatchEvent(new Event("input"));
        input.focus();
      } }, oneLine(v))));
    };
    const soon = () => { clearTimeout(timer); timer = setTimeout(load, 200); };
    input.addEventListener("input", soon);
    input.addEventListener("focus", soon);
    return node;
  }

  #number(s, id) {
    const value = s.get();
    return this.#input(s, id, value === undefined || value === null ? "" : value instanceof Num ? value.text : String(value), (text) => (text.trim() === "" ? undefined : isNumber(text.trim()) ? new Num(text.trim()) : text), { class: "number-input", inputmode: "decimal" });
  }

  #json(s, id) {
    const value = s.get();
    return this.#input(s, id, value === undefined ? "" : write(value, "  "), (text) => {
      if (text.trim() === "") return undefined;
      try { return parse(text); } catch { return text; } // a text without quotes
    }, { placeholder: "JSON, or text" });
  }

  /** Buttons, or a menu of many values. */
  #pick(s, id, options) {
    /** @type {Array<[any, string]>} */
    const all = [...options];
    if (s.field.nullable || s.field.kind === "null") all.push([null, "null"]);
    if (!s.inRow && !(s.field.required && all.length === 1)) all.unshift([undefined, "absent"]);
    const same = (a, b) => (a === undefined || b === undefined ? a === b : write(a) === write(b));
    const now = s.get();
    if (all.length > 6 || all.reduce((sum, [, text]) => sum + text.length + 3, 0) > 36) {
      const select = el("select", { id, "aria-labelledby": id + "-name", "aria-describedby": id + "-issue", change: () => s.set(all[Number(select.value)]?.[0]) },
        all.map(([value, text], i) => el("option", { value: i, selected: same(value, now) }, oneLine(text))), all.some(([value]) => same(value, now)) ? null : el("option", { value: -1, selected: true }, oneLine(write(now)).slice(0, 60)));
      return select;
    }
    const group = el("div", { class: "choice", role: "group", "aria-labelledby": id + "-name" }, all.map(([value, text]) => el("button", { "aria-pressed": String(same(value, now)), click: (e) => {
      s.set(value);
      for (const b of group.children) b.setAttribute("aria-pressed", String(b === e.currentTarget));
    } }, oneLine(text))));
    return group;
  }

  /** The place of a member. @returns {Slot} */
  #member(s, field, name) {
    return { field, label: name, path: below(s.path, name), get: () => s.get()?.get(name), set: (v) => {
      const map = s.get() instanceof Map ? s.get() : new Map();
      if (v === undefined) map.delete(name);
      else map.set(name, v);
      s.set(map);
    } };
  }

  #object(s, redraw) {
    const f = s.field, known = new Set((f.properties ?? []).map((p) => p.name));
    const map = s.get() instanceof Map ? s.get() : new Map();
    const others = [...map.keys()].filter((name) => !known.has(name));
    const remove = (name) => el("button", { class: "quiet", "aria-label": `Remove ${name}`, title: "Remove", click: () => { map.delete(name); s.set(map); redraw(); } }, "×");
    const name = el("input", { class: "key-name", "aria-label": "Name of a new entry", placeholder: "name", spellcheck: "false", keydown: (e) => { if (e.key === "Enter" && !e.ctrlKey && !e.metaKey) { e.preventDefault(); add(); } } });
    const add = () => {
      if (map.has(name.value) || known.has(name.value)) return;
      map.set(name.value, seed(f.extra));
      s.set(map);
      redraw();
    };
    return [(f.properties ?? []).map((p) => this.#row(this.#member(s, p, p.name))),
      others.map((n) => el("div", { class: "item" }, this.#row({ ...this.#member(s, f.extra ?? { kind: "any" }, n), inRow: true }), remove(n))),
      f.extra ? el("div", { class: "adding" }, name, el("button", { class: "quiet", click: add }, known.size ? "+ other property" : "+ entry")) : null];
  }

  #array(s, redraw) {
    const f = s.field, tuple = f.tuple ?? [], list = Array.isArray(s.get()) ? s.get() : [];
    const change = () => { s.set(list); redraw(); };
    const button = (glyph, label, click) => el("button", { class: "quiet", "aria-label": label, title: label, click: () => { click(); change(); } }, glyph);
    return [el("ol", { class: "items" }, list.map((_, i) => el("li", { class: "item" },
      this.#row({ field: tuple[i] ?? f.items ?? { kind: "any" }, label: tuple[i]?.title || String(i + 1), path: below(s.path, i), inRow: true, get: () => list[i], set: (v) => { list[i] = v === undefined ? null : v; s.set(list); } }),
      i < tuple.length ? null : el("span", { class: "item-buttons" }, i > tuple.length ? button("↑", `Move row ${i + 1} up`, () => list.splice(i - 1, 2, list[i], list[i - 1])) : null, button("×", `Remove row ${i + 1}`, () => list.splice(i, 1)))))),
    list.length < tuple.length || f.items ? el("div", { class: "adding" }, button("+ row", `Add a row to ${s.label || "the list"}`, () => list.push(seed(tuple[list.length] ?? f.items)))) : null];
  }

  #variants(s, id, redraw) {
    const all = s.field.variants, scores = all.map((v) => fit(v, s.get()));
    const chosen = s.field.chosen !== undefined && scores[s.field.chosen] > 0 ? s.field.chosen : Math.max(0, scores.indexOf(Math.max(...scores)));
    const choose = (i) => {
      const next = initial(all[i], true) ?? seed(all[i]), old = s.get();
      if (next instanceof Map && old instanceof Map) for (const p of all[i].properties ?? []) if (!next.has(p.name) && old.has(p.name) && fit(p, old.get(p.name)) > 0) next.set(p.name, old.get(p.name));
      s.field.chosen = i;
      s.set(next);
      redraw();
    };
    const select = el("select", { id: id + "-variant", "aria-label": `${s.label || "value"}: which form`, change: () => choose(Number(select.value)) },
      all.map((v, i) => el("option", { value: i, selected: i === chosen }, oneLine(v.title || v.kind).slice(0, 80))));
    const v = all[chosen];
    return [select, v.description ? el("p", { class: "field-about" }, reveal(v.description)) : null,
      ["object", "array", "variants"].includes(v.kind) ? el("div", { class: "variant" }, this.#control({ ...s, field: v }, id, redraw)) : this.#row({ ...s, field: { ...v, title: "", description: "" }, label: v.title || s.label })];
  }

  #lazy(s) {
    const value = s.get(), isNew = value === undefined || value === null;
    const open = async () => {
      const field = { ...(await this.on.open(s.field.at)), name: s.field.name, required: s.field.required, title: s.field.title, description: s.field.description };
      if (isNew) s.set(initial(field, true) ?? seed(field));
      s.become?.(field);
    };
    return [isNew ? null : el("code", {}, oneLine(write(value)).slice(0, 80), " "), el("button", { "aria-label": `${s.label}: ${isNew ? "fill in" : "open"}`, click: open }, isNew ? "fill in" : "open")];
  }
}
