// @ts-check
// Audit: what was called, asked, decided and changed, from the audit log.
import { get, isEmbedded, isShownAt } from "./api.js";
import { attempt, command, el, fill, oneLine, reveal } from "./dom.js";
import { clock, pad, padLeft, plural, size, took } from "./format.js";
import { facts, inspect } from "./inspector.js";
import { List } from "./list.js";
import { momentButton } from "./moment.js";
import { link, set } from "./route.js";
import { diff } from "./servers.js";
import { Screen } from "./screen.js";

const maxKept = 20_000;
const kinds = { ok: "ok", accept: "ok", allowed: "ok", error: "bad", "tool error": "bad", refused: "bad", held: "ask", noted: "ask", unanswered: "wait", "input required": "ask" };

/** The name of what happened. */
const what = (r) => oneLine([r.server, r.name].filter(Boolean).join(".") || r.reason || "");
const time = (r, n) => `${r.time.slice(0, 10)} ${clock(r.time)}`.slice(n);

function draw(r, columns) {
  const isWide = columns >= 90, kind = kinds[r.outcome] ?? "soft";
  const head = `${time(r, isWide ? 0 : 11).slice(0, isWide ? 19 : 8)}  ${isWide ? pad(oneLine(r.client || "–"), 14) + "  " + pad(oneLine(r.method), 20) + "  " : ""}`;
  const outcome = `${oneLine(r.outcome)}${r.by && isWide ? " · " + oneLine(r.by) : ""}`, tail = isWide ? padLeft(r.ms ? took(r.ms) : "", 8) : "";
  const room = Math.max(4, columns - head.length - tail.length - 1), side = Math.min(outcome.length, room - 4);
  return { parts: [["soft", head], ["", pad(what(r), room - side - 1) + " "], [kind, pad(outcome, side)], ["tail", tail]], level: 1, label: `${oneLine(r.client ?? "")} ${oneLine(r.method)} ${what(r)} ${outcome}` };
}

export class AuditScreen extends Screen {
  #bar = el("div", { class: "bar" });
  #empty = el("div", { class: "empty over" });
  #all = [];
  #next = 0;
  #file = "";
  #words = [];
  #selection = "";
  #busy = false;
  list = new List("Records", draw, { select: (r, isOpen) => { if (isOpen || this.#selection) set({ sel: String(r.at) }, true); }, toggle: () => {}, moved: () => this.#drawBar() });

  connectedCallback() {
    this.build("Audit", this.#bar, el("div", { class: "wire" }, this.list.node, this.#empty));
    this.on("audit", () => this.#load());
    this.on("connection", () => this.#load()); // a record may have come before the stream began
    this.#load();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.list.resized.disconnect();
  }

  show(_, query) {
    this.#words = (query.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    this.#selection = query.get("sel") ?? "";
    this.list.rows = this.#all.filter((r) => this.#matches(r));
    this.#draw();
  }

  move(by) { this.list.move(by); this.list.node.focus(); }

  key(key) {
    if (key === "G") this.list.toEnd();
    return key === "G";
  }

  #matches(r) { return isShownAt(r.time) && this.#words.every((word) => r.text.includes(word)); }

  async #load() {
    if (this.#busy) return;
    this.#busy = true;
    for (let more = true; more;) {
      const page = await attempt(() => get("/v1/audit?after=" + this.#next));
      if (!page) break;
      if (page.isCut) this.#all = this.list.rows = [];
      for (const r of page.records) {
        r.text = [r.time, r.client, r.method, what(r), r.outcome, r.by, r.reason, r.error].join(" ").toLowerCase();
        this.#all.push(r);
        if (this.#matches(r)) this.list.rows.push(r);
      }
      if (this.#all.length > maxKept) this.#all.splice(0, this.#all.length - maxKept);
      more = page.records.length > 0 && page.next > this.#next && this.#next > 0;
      this.#next = page.next;
      this.#file = page.file ?? "";
    }
    this.#busy = false;
    this.#draw();
  }

  #draw() {
    this.list.refresh();
    this.#drawBar();
    this.#empty.hidden = this.list.rows.length > 0;
    fill(this.#empty, el("p", {}, this.#all.length ? "No record matches these words." : "Nothing was called, asked or changed yet."), this.#all.length || isEmbedded ? null : el("p", {}, command("dowel call everything.echo message=hello")));
    const r = this.#all.find((r) => String(r.at) === this.#selection);
    if (!r) return;
    this.list.selected = r;
    const isChange = r.method.endsWith("/change");
    inspect("audit " + r.at, what(r) || oneLine(r.method), el("div", { class: "part" }, r.error ? el("p", { class: "reason" }, reveal(r.error)) : null,
      facts([["Time", time(r, 0)], ["Who", oneLine(r.client ?? "")], ["What", el("code", {}, reveal(r.method))], ["Server", r.server ? el("a", { href: link("servers/" + encodeURIComponent(r.server)) }, oneLine(r.server)) : ""], ["Outcome", oneLine(r.outcome)], ["By", oneLine(r.by ?? "")],
        ["Reason", isChange ? "" : reveal(r.reason ?? "")], ["Took", r.ms ? took(r.ms) : ""], ["Size", r.sent || r.received ? `${size(r.sent)} in, ${size(r.received)} out` : ""], ["Arguments", r.arguments ? el("code", {}, reveal(JSON.stringify(r.arguments))) : ""]]),
      momentButton(r.time), isChange ? diff((r.reason ?? "").split("\n")) : null), () => set({ sel: undefined }, true));
  }

  #drawBar() {
    fill(this.#bar, el("span", { class: "soft number" }, plural(this.list.rows.length, "record")), el("span", { class: "soft where" }, this.#file ? oneLine(this.#file) : "in memory, until dowel ends; gateway.audit names a file"), el("span", { class: "grow" }),
      this.list.follows || !this.list.rows.length ? null : el("button", { class: "quiet", title: "Go to the newest and follow (G)", click: () => this.list.toEnd() }, "newest ↓"));
  }
}

customElements.define("dowel-audit", AuditScreen);
