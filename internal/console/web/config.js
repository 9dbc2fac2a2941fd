// @ts-check
// Config: the files that dowel reads, and the effective values of each server with their places.
import { get } from "./api.js";
import { attempt, command, el, moveFocus, oneLine, peg, redraw, reveal } from "./dom.js";
import { plural } from "./format.js";
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

  connectedCallback() {
    this.build("Config", this.#node);
    this.on("config", () => this.#load());
    this.on("connection", () => this.#load());
    this.#load();
  }

  show(path, query) {
    this.#name = path[0] ?? "";
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
    redraw(this.#node,
      el("section", { "aria-label": "Files" }, el("h2", {}, "Files, the first wins"), el("ul", {}, files.map((f) => {
        const [glyph, kind] = marks[f.state];
        return row(glyph, kind, el("span", { class: "name" }, shortPlace(f)), f.state === "missing" ? "not there" : f.state, f.scope,
          [place(f), f.servers ? "  " + plural(f.servers, "server") : "", f.shadowed ? el("span", { class: "note" }, `${f.shadowed} replaced`) : null], f.problems);
      }))),
      el("section", { "aria-label": "Servers" }, el("h2", {}, "Servers", el("span", { class: "count" }, found.length)), el("ul", {}, found.map((s) => row(
        s.problems ? "○" : "●", s.problems ? "bad" : "soft", el("a", { class: "name", href: link("config/" + encodeURIComponent(s.name)), data: { key: s.name }, title: s.name }, oneLine(s.name)),
        s.scope + (s.disabled ? ", disabled" : ""), shortPlace(s.at), [plural(s.values.length, "value"), s.shadowed ? el("span", { class: "note" }, "replaces " + s.shadowed.map(shortPlace).join(", ")) : null], s.problems, s.name === this.#name))),
        found.length ? null : el("p", { class: "empty" }, servers.length ? ["No entry has these words. ", el("a", { href: link("config") }, "Show all")] : ["No file lists a server yet. Add one with ", command("dowel import")])));
    const s = servers.find((s) => s.name === this.#name);
    if (s) this.#inspect(s);
  }

  #inspect(s) {
    inspect("config " + s.name, oneLine(s.name), el("div", { class: "part" }, s.problems?.map((p) => el("p", { class: "reason" }, reveal(p))),
      facts([["Entry", el("code", {}, place(s.at))], ["Replaces", s.shadowed?.map((at) => el("div", {}, el("code", {}, place(at))))], ["State", el("a", { href: link("servers/" + encodeURIComponent(s.name)) }, "in Servers")]]),
      el("h3", {}, "Effective values"), facts(s.values.map((v) => [oneLine(v.field), [el("code", {}, v.value === "" ? "empty" : reveal(v.value)),
        el("div", { class: "soft" }, v.at ? [v.at.path === s.at.path ? "line " + v.at.line : place(v.at), v.written ? [", from ", el("code", {}, reveal(v.written))] : null, v.from ? ` (${oneLine(v.from.join(", "))})` : null] : "by default")]])),
      el("p", { class: "soft" }, "The same on the command line: ", command("dowel config explain " + s.name))), () => go("config"));
  }
}

customElements.define("dowel-config", ConfigScreen);
