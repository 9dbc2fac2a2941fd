// @ts-check
// Config: the files that dowel reads, and the effective values of each server with their places.
import { get, session } from "./api.js";
import { attempt, command, el, moveFocus, oneLine, peg, redraw, reveal } from "./dom.js";
import { askFor, edit, editorOf } from "./draft.js";
import { plural } from "./format.js";
import { importServers } from "./import.js";
import { facts, inspect } from "./inspector.js";
import { go, link } from "./route.js";
import { Screen } from "./screen.js";

const marks = { read: ["●", "ok"], missing: ["·", "soft"], empty: ["◌", "wait"], broken: ["○", "bad"] };

const place = (at) => oneLine(at.path) + (at.line ? ":" + at.line : "");
const shortPlace = (at) => place(at).replace(/^.*[/\\]/, "");

/** The entry of a file or server. */
const row = (glyph, kind, name, state, where, note, problems, isChosen) => el("li", { class: `server${isChosen ? " selected" : ""}${problems?.length ? " failing" : ""}` },
  peg(glyph, kind), name, el("span", { class: "state soft" }, state), el("span", { class: "revision", title: where }, where), el("span", { class: "offers" }, note),
  problems?.map((p) => el("p", { class: "reason" }, reveal(p))));

export class ConfigScreen extends Screen {
  #node = el("div", { class: "servers config" });
  #all = null;
  #name = "";
  #words = [];
  #editor = /** @type {ReturnType<typeof editorOf>|null} */ (null);

  connectedCallback() {
    this.build("Config", this.#node);
    this.on("config", () => this.#load());
    this.on("connection", () => this.#load());
    this.#load();
  }

  show(path, query) {
    this.#name = path[0] ?? "";
    const file = query.get("file");
    if (file !== (this.#editor?.path ?? null)) this.#editor = file ? editorOf(file, session.readOnly) : null;
    this.#words = (query.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    this.#draw();
  }

  move(by) { moveFocus(this.#node, "a.name", by); }

  async #load() {
    this.#all = await attempt(() => get("/v1/config")) ?? this.#all;
    this.#draw();
  }

  #draw() {
    if (!this.#all) return;
    const { files, servers } = this.#all;
    const found = servers.filter((s) => { const text = JSON.stringify(s).toLowerCase(); return this.#words.every((word) => text.includes(word)); });
    if (this.#editor) {
      this.#editor.follow(files.find((f) => f.path === this.#editor?.path));
      if (!this.#editor.node.isConnected) redraw(this.#node, el("p", { class: "add" }, el("a", { href: link("config") }, "← All files")), this.#editor.node);
      return;
    }
    redraw(this.#node,
      el("section", { "aria-label": "Files" }, el("h2", {}, "Files, the first wins"), el("ul", {}, files.map((f) => {
        const [glyph, kind] = marks[f.state];
        return row(glyph, kind, el("a", { class: "name", href: link("config", { file: f.path }), data: { key: "f" + f.path } }, shortPlace(f)), f.state === "missing" ? "not there" : f.state, f.scope,
          [place(f), f.servers ? "  " + plural(f.servers, "server") : "", f.shadowed ? el("span", { class: "note" }, `${f.shadowed} replaced`) : null], f.problems);
      }))),
      el("section", { "aria-label": "Servers" }, el("h2", {}, "Servers", el("span", { class: "count" }, found.length)),
        session.readOnly ? null : el("p", { class: "add" }, el("button", { data: { key: "add" }, click: () => this.#add() }, "Add a server…"), " ", el("button", { data: { key: "import" }, click: importServers }, "Import from other tools…")), el("ul", {}, found.map((s) => row(
        s.problems ? "○" : "●", s.problems ? "bad" : "soft", el("a", { class: "name", href: link("config/" + encodeURIComponent(s.name)), data: { key: s.name }, title: s.name }, oneLine(s.name)),
        s.scope + (s.disabled ? ", disabled" : ""), shortPlace(s.at), [plural(s.values.length, "value"), s.shadowed ? el("span", { class: "note" }, "replaces " + s.shadowed.map(shortPlace).join(", ")) : null], s.problems, s.name === this.#name))),
        found.length ? null : el("p", { class: "empty" }, servers.length ? ["No entry has these words. ", el("a", { href: link("config") }, "Show all")] : ["No file lists a server yet. Add one with ", command("dowel import")])));
    const s = servers.find((s) => s.name === this.#name);
    if (s) this.#inspect(s);
  }

  /** Adds an entry to the user's own file. */
  async #add() {
    const file = this.#all.files.find((f) => f.scope === "user" && f.state === "read") ?? this.#all.files.findLast((f) => f.scope === "user");
    const answer = await askFor("Add a server", "It is added to " + file.path, [["name", "Name"], ["start", "Command, or the URL of the server"], ["args", "Arguments, one on each line", "", "textarea"]]);
    if (!answer) return;
    const [name, start, args] = answer.map((text) => text.trim()), words = args.split("\n").filter(Boolean);
    await edit(file.path, [{ path: ["mcpServers", name], value: /^(https?|wss?):/.test(start) ? { url: start } : { command: start, ...(words.length ? { args: words } : {}) } }]);
  }

  /** Sets a value of an entry. Text that is no JSON is a string. */
  async #set(s, field, value) {
    const answer = await askFor(`Change ${s.name}`, "Write a secret as a reference, such as ${TOKEN}. Text that is no JSON is a string.", [["field", "Field, such as env.MODE", field], ["value", "Value", value, "textarea"]]);
    if (!answer) return;
    const [first, ...rest] = answer[0].trim().split("."), keys = ["env", "headers"].includes(first) && rest.length ? [first, rest.join(".")] : [first, ...rest];
    let parsed = /** @type {any} */ (answer[1]);
    try { if (!["env", "headers"].includes(first) && !/^\d{16}/.test(parsed)) parsed = JSON.parse(parsed); } catch { /* a string */ }
    await edit(s.at.path, [{ path: ["mcpServers", s.name, ...keys], value: parsed }]);
  }

  /** The buttons of an entry. */
  #actions(s) {
    if (session.readOnly) return null;
    return el("div", { class: "buttons" }, el("button", { click: () => this.#set(s, "", "") }, "Set a value…"),
      el("a", { class: "button", href: link("config", { file: s.at.path }) }, "Edit the text"),
      el("button", { class: "quiet", click: () => edit(s.at.path, [{ path: ["mcpServers", s.name], remove: true }]) }, "Remove…"));
  }

  /** The button that changes a value. Elements of lists are changed in the text. */
  #changeButton(s, v) {
    if (session.readOnly || v.field.includes("[") || !v.at || v.at.path !== s.at.path) return null;
    const text = v.written ?? v.value;
    return el("button", { class: "quiet", "aria-label": "Change " + v.field, click: () => this.#set(s, v.field, text.includes("****") ? "" : text) }, "Change…");
  }

  #inspect(s) {
    inspect("config " + s.name, oneLine(s.name), el("div", { class: "part" }, s.problems?.map((p) => el("p", { class: "reason" }, reveal(p))),
      facts([["Entry", el("code", {}, place(s.at))], ["Replaces", s.shadowed?.map((at) => el("div", {}, el("code", {}, place(at))))], ["State", el("a", { href: link("servers/" + encodeURIComponent(s.name)) }, "in Servers")]]),
      el("h3", {}, "Effective values"), facts(s.values.map((v) => [oneLine(v.field), [el("code", {}, v.value === "" ? "empty" : reveal(v.value)), this.#changeButton(s, v),
        el("div", { class: "soft" }, v.at ? [v.at.path === s.at.path ? "line " + v.at.line : place(v.at), v.written ? [", from ", el("code", {}, reveal(v.written))] : null, v.from ? ` (${oneLine(v.from.join(", "))})` : null] : "by default")]])),
      this.#actions(s), el("p", { class: "soft" }, "The same on the command line: ", command("dowel config explain " + s.name))), () => go("config"));
  }
}

customElements.define("dowel-config", ConfigScreen);
