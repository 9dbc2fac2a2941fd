// @ts-check
// The wire: every operation and message as it passes.
import { get, getText, isEmbedded, isShownAt, moment, nowShown, session } from "./api.js";
import { ask, attempt, command, copy, el, fill, oneLine, peg, reasonOf, reveal, toast } from "./dom.js";
import { clock, pad, padLeft, pegOf, plural, size, took } from "./format.js";
import { facts, inspect, isShown } from "./inspector.js";
import { parse, tree } from "./json.js";
import { List } from "./list.js";
import { momentButton } from "./moment.js";
import { go, here, link, set } from "./route.js";
import { diff, quote } from "./servers.js";
import { Screen } from "./screen.js";
import { store } from "./store.js";

/** What dowel does with a frame, from its side. */
const arrow = (f) => (f.wire === "stray" ? "✗" : (f.wire === "sent") === (f.leg === "server") ? "→" : "←");

/** The words of a row behind the server: its method, and its text. @returns {[string, string]} */
function words(row) {
  const name = row.name && row.method === "tools/call" ? row.name : [row.method, row.name].filter(Boolean).join(" ");
  return [oneLine(name ?? ""), oneLine(row.error || row.what || "")];
}

/** Splits the line: what has no room is left out, the least important first. */
function layout(columns) {
  if (columns >= 110) return { time: 12, client: 14, server: 16, tail: true };
  if (columns >= 80) return { time: 12, client: 10, server: 12, tail: true };
  if (columns >= 56) return { time: 8, client: 8, server: 9, tail: true };
  return { time: 8, client: 0, server: 0, tail: true };
}

/** @returns {import("./list.js").Drawn} */
function draw(row, columns) {
  if (row.k === "gap") {
    const n = row.to - row.from + 1, text = ` ${plural(n, "record")} ${row.from === 1 ? "before this are" : "were lost here: they are"} not kept `;
    const side = "≈".repeat(Math.max(2, Math.floor((columns - text.length) / 2)));
    return { parts: [["gap", side + text + side]], level: 1, label: text.trim(), className: "gap" };
  }
  return row.k === "op" ? drawOperation(row, columns) : drawFrame(row, columns);
}

/** @returns {import("./list.js").Drawn} */
function drawOperation(op, columns) {
  const l = layout(columns), [glyph, kind, word] = pegOf(op.status), [name, text] = words(op);
  const tail = padLeft(size((op.received ?? 0) + (op.sent ?? 0)), 6) + padLeft(op.ms === undefined ? "" : took(op.ms), 8);
  const head = `${op.open ? "▾" : "▸"} ${clock(op.start).slice(0, l.time)}  ${l.client ? padLeft(oneLine(op.client ?? "–"), l.client) + " " : ""}`;
  const server = l.server ? ` ${pad(oneLine(op.server ?? "–"), l.server)}  ` : ` ${op.server ? oneLine(op.server) + " " : ""}`;
  const room = Math.max(4, columns - head.length - 3 - server.length - tail.length - 1);
  const shown = pad(name, Math.min(room, Math.max(name.length, 4)));
  const rest = Math.max(0, room - shown.length);
  return {
    parts: [["soft", head], [kind, `─${glyph}─`], ["", server + shown], [op.error ? "bad" : "soft", pad(rest > 1 ? " " + text : "", rest)], ["tail", " " + tail]],
    level: 1, expanded: !!op.open, label: `${op.client ?? ""} ${op.server ?? ""} ${name} ${word} ${took(op.ms)}`,
  };
}

/** @returns {import("./list.js").Drawn} */
function drawFrame(f, columns) {
  const l = layout(columns), isChild = !!f.parent, isStray = f.kind === "stray";
  const peer = oneLine((f.leg === "server" ? f.server : f.client) ?? "–");
  const lead = isChild ? `  ${f.last ? "└" : "├"} ` : "  ";
  const head = `${lead}${clock(f.t).slice(0, isChild ? 12 : l.time)}  `;
  const side = f.leg === "server" ? `dowel ${arrow(f)} ${peer}` : `${peer} ${arrow(f)} dowel`;
  const width = columns >= 80 ? 30 : columns >= 56 ? 22 : 16;
  const kind = isStray ? "stray" : f.status ? f.status : f.kind === "request" ? oneLine(f.method ?? "") : `${oneLine(f.method ?? f.kind)}`;
  const tail = padLeft(size(f.size), 6) + padLeft(f.ms === undefined ? "" : took(f.ms), 8);
  const body = Math.max(4, columns - head.length - width - 2 - tail.length - 1);
  const label = `${kind}${f.status && f.method ? " " + oneLine(f.method) : ""}`;
  return {
    parts: [["soft", head], [isStray ? "bad" : f.leg === "server" ? "leg-server" : "leg-client", pad(side, width) + "  "],
      [isStray ? "bad" : f.status ? pegOf(f.status)[1] : "", pad(label, Math.min(body, label.length))], ["soft", pad(body > label.length + 1 ? " " + oneLine(f.what ?? "") : "", Math.max(0, body - label.length))], ["tail", " " + tail]],
    level: isChild ? 2 : 1, label: `${side} ${kind} ${oneLine(f.what ?? "")}`, className: isChild ? "child" : "",
  };
}

export class WireScreen extends Screen {
  #modes = [el("button", { click: () => set({ rows: undefined, sel: undefined }) }, "Operations"), el("button", { click: () => set({ rows: "frames", sel: undefined }) }, "Messages")];
  #count = el("span", { class: "soft number" });
  #newest = el("button", { class: "quiet", title: "Go to the newest and follow (G)", click: () => this.list?.toEnd() }, "newest ↓");
  #exports = el("span", { class: "buttons", role: "group", "aria-label": "Export" }, el("span", { class: "soft" }, "Export"),
    ["jsonl", "har"].map((format) => el("button", { class: "quiet", title: `Save the messages of this filter${isEmbedded ? "" : `, as dowel wire --export ${format}`}`, click: () => this.#export(format) }, format.toUpperCase())));
  #pause = el("button", { title: "Hold new rows back (Space)", click: () => store.pause(!store.paused) }, "Pause");
  #bar = el("div", { class: "bar" }, el("div", { class: "choice", role: "group", "aria-label": "Rows" }, this.#modes), this.#count, el("span", { class: "grow" }), this.#newest, this.#exports, this.#pause);
  #empty = el("div", { class: "empty over" });
  #selection = "";
  #seen = 0; // rows of the store that are in the list

  connectedCallback() {
    this.list = new List("Operations", draw, {
      select: (row, isOpen) => this.#select(row, isOpen), toggle: (row, open) => this.#toggle(row, open), moved: () => this.#drawBar(),
    });
    this.build("Wire", this.#bar, el("div", { class: "wire" }, this.list.node, this.#empty));
    this.on("rows", () => this.#draw());
    this.on("connection", () => this.#drawBar());
    this.on("cleared", () => { this.#reset(); this.#draw(); });
    this.on("dropped", (e) => this.#dropOldest(e.detail));
    this.on("removed", (e) => this.#remove(e.detail));
    this.#reset();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.list?.resized.disconnect();
  }

  #reset() {
    if (!this.list) return;
    this.list.rows = [];
    this.#seen = 0;
    for (const row of store.rows) row.open = false;
    this.list.selected = store.rows.includes(this.list.selected) ? this.list.selected : null;
  }

  /** Follows the store, which has dropped its first n rows. */
  #dropOldest(n) {
    const first = this.list?.rows.indexOf(store.rows[0]) ?? -1;
    if (first < 0 || this.#seen < n) return this.#reset();
    this.list?.rows.splice(0, first);
    this.#seen -= n;
  }

  /** Follows the store, which has removed a row at an index. A moment keeps what it had. */
  #remove({ row, index }) {
    if (index >= this.#seen) return; // not in the list yet
    this.#seen--;
    const rows = this.list?.rows ?? [], at = rows.findLastIndex((r) => r.op === row.op && r.k === "op");
    if (at >= 0 && !moment()) rows.splice(at, 1 + rows.filter((r) => r.parent === row).length);
  }

  show(_, query) {
    store.choose(query.get("q") ?? "", query.get("rows") === "frames");
    this.#selection = query.get("sel") ?? "";
    this.#draw();
    this.#showSelection();
  }

  move(by) { this.list?.move(by); this.list?.node.focus(); }

  key(key) {
    const row = this.list?.selected;
    if (key === " ") store.pause(!store.paused);
    else if (key === "y" && row) this.#copy(row);
    else if (key === "m" && row?.op) this.#mark(String(row.op));
    else if (key === "c" && row?.op) this.#compare(String(row.op));
    else if (key === "e" && row?.k === "op") this.#edit(row.op);
    else if (key === "f") set({ rows: store.frames ? undefined : "frames" });
    else if ((key === "[" || key === "]") && row) this.list?.move(key === "]" ? 1 : -1);
    else if (key === "G") this.list?.toEnd();
    else return false;
    return true;
  }

  /** Opens the arguments of a call in Tools. */
  #edit(id) {
    return attempt(async () => {
      const call = await get(`/v1/operations/${id}/call`);
      go(`tools/${[call.server, call.kind, call.name].map(encodeURIComponent).join("/")}`, { from: String(id) });
    });
  }

  #draw() {
    const list = this.list;
    if (!list) return;
    if (this.#seen < store.rows.length) {
      for (const row of store.rows.slice(this.#seen)) if (row.k === "gap" || isShownAt(row.start ?? row.t)) list.rows.push(asOfMoment(row));
      this.#seen = store.rows.length;
    }
    list.refresh();
    this.#drawBar();
    this.#drawEmpty();
    if (this.#selection && !list.selected) this.#showSelection();
  }

  // The bar keeps its elements: a click is lost if its button is replaced meanwhile.
  #drawBar() {
    const n = moment() ? this.list?.rows.filter((r) => r.k !== "gap" && !r.parent).length ?? 0 : store.rows.length - store.gaps;
    const paused = store.paused;
    const held = store.held.filter((r) => r.k === "op" || r.k === "frame").length;
    this.#modes.forEach((button, i) => button.setAttribute("aria-pressed", String(store.frames === (i === 1))));
    fill(this.#count, plural(n, store.frames ? "message" : "operation"), store.dropped ? `, ${store.dropped.toLocaleString("en")} older ones are dropped here` : "");
    this.#newest.hidden = !this.list || this.list.follows || n === 0;
    this.#exports.hidden = n === 0;
    this.#pause.setAttribute("aria-pressed", String(paused));
    this.#pause.className = paused ? "strong" : "";
    const label = paused ? `Go on${held ? `, ${held} new` : ""}` : "Pause";
    if (this.#pause.textContent !== label) this.#pause.textContent = label;
  }

  #drawEmpty() {
    this.#empty.hidden = (this.list?.rows.length ?? 0) > 0 && !store.filterError;
    if (this.#empty.hidden) return;
    if (store.filterError) fill(this.#empty, el("p", {}, "dowel does not understand this filter."), el("p", { class: "bad" }, reveal(store.filterError)));
    else if (!store.complete) fill(this.#empty, el("p", {}, "Reading what dowel has kept…"));
    else if (store.filter) fill(this.#empty, el("p", {}, "Nothing that dowel has kept matches this filter. New matches appear here."), el("p", {}, el("a", { class: "button", href: link("wire") }, "Show all")));
    else fill(this.#empty, el("p", {}, "Nothing has passed yet. Each call of a client appears here, with what dowel made of it for the server.", isEmbedded ? "" : " Try one:"), isEmbedded ? null : el("p", {}, command("dowel tools")));
  }

  #select(row, isOpen) {
    const id = idOf(row);
    if (!id) return;
    if (isOpen || this.#selection) {
      this.#selection = id;
      set({ sel: id }, true);
    }
  }

  async #showSelection() {
    const [kind, number] = this.#selection.split(":");
    if (!number) return;
    const row = this.list?.rows.find((r) => idOf(r) === this.#selection);
    if (row && this.list && this.list.selected !== row) {
      this.list.selected = row;
      this.list.follows = this.list.follows && row === this.list.rows.at(-1);
      this.list.refresh();
      requestAnimationFrame(() => this.list?.reveal());
    }
    if (kind === "op") await this.#inspectOperation(number);
    else if (kind === "frame") await this.#inspectFrame(number);
  }

  #closed = () => {
    this.#selection = "";
    set({ sel: undefined }, true);
    this.list?.node.focus();
  };

  async #inspectOperation(id) {
    const selection = this.#selection;
    try {
      const detail = await get("/v1/operations/" + id), o = detail.operation && asOfMoment(detail.operation), frames = detail.frames.filter((f) => isShownAt(f.t));
      if (selection !== this.#selection || this.signal.aborted) return;
      const again = await this.#again(id, o ?? {});
      if (selection !== this.#selection || this.signal.aborted) return;
      const op = o ?? {}, [glyph, kind, word] = pegOf(op.status ?? "");
      inspect(selection, [peg(glyph, kind), " ", oneLine(op.name || op.method || "operation")], el("div", { class: "part" },
        el("p", { class: "mono lead" }, oneLine(op.client ?? "–"), el("span", { class: kind, "aria-hidden": "true" }, ` ──${glyph}── `), oneLine(op.server ?? "–")),
        op.error ? el("p", { class: "reason" }, reveal(op.error)) : null, timeBar(op), op.start ? momentButton(op.start) : null,
        facts([["Operation", `${id} · ${word}`], ["Method", el("code", {}, reveal(op.method ?? ""))], ["Client", op.client ? filterLink("client", op.client) : ""], ["Server", op.server ? filterLink("server", op.server) : ""],
          ["Started", op.start ? clock(op.start) : ""], ["Took", took(op.ms)], ["Size", `${size(op.received)} in, ${size(op.sent)} out`],
          ["Rounds", op.rounds > 1 ? op.rounds : ""], ["Calls", op.calls > 1 ? op.calls : ""], ["Questions", op.questions], ["Progress", op.progress]]),
        el("h3", {}, "Messages", el("span", { class: "count" }, frames.length)), el("ol", { class: "frames" }, frames.map((f) => frameLink(f))),
        again, o && frames.length < o.frames ? el("p", { class: "soft" }, `${plural(o.frames - frames.length, "message")} of it are not kept any more.`) : null), this.#closed);
    } catch (e) {
      this.#gone(selection, e);
    }
  }

  /** How an operation can be repeated, and compared with the marked one. */
  async #again(id, op) {
    const marked = here().query.get("mark") ?? "";
    const mark = el("button", { class: "quiet", title: "Mark it, to compare another one with it (m)", click: () => this.#mark(id) }, marked === id ? "Unmark" : "Mark");
    const compare = marked && marked !== id ? el("button", { title: "Show the difference (c)", click: () => this.#compare(id) }, `Compare with ${marked}`) : null;
    if (op.method !== "tools/call" || !op.status || op.status === "pending" || op.status === "asked") return el("div", { class: "buttons" }, mark, compare);
    let call = null;
    try { call = await get(`/v1/operations/${id}/call`); } catch (e) { return [el("p", { class: "soft" }, `It cannot be repeated: ${reasonOf(e)}`), el("div", { class: "buttons" }, mark, compare)]; }
    const forms = isEmbedded ? { "go-test": "Go test" } : { dowel: "dowel call", curl: "curl", "go-test": "Go test" };
    return el("section", { "aria-label": "Again" }, el("h3", {}, "Again"), call.obstacle ? el("p", { class: "soft" }, reveal(call.obstacle)) : null,
      el("div", { class: "buttons" }, call.obstacle || session.readOnly ? null : el("a", { class: "button strong", href: link(`tools/${[call.server, call.kind, call.name].map(encodeURIComponent).join("/")}`, { from: id }), title: "Open its arguments in Tools (e)" }, "Edit and run…"), mark, compare),
      el("div", { class: "buttons", role: "group", "aria-label": "Copy as" }, el("span", { class: "soft" }, "Copy as"), Object.entries(forms).map(([form, text]) => el("button", { class: "quiet", click: () => copy(call.as[form]) }, text))));
  }

  #mark(id) {
    const marked = here().query.get("mark") === id;
    set({ mark: marked ? undefined : id }, true);
    toast(marked ? "Nothing is marked" : `Operation ${id} is marked: choose another one, and compare`);
  }

  #compare(id) {
    const a = here().query.get("mark");
    if (!a || a === id) { toast("Mark another operation first", true); return; }
    attempt(async () => {
      const c = await get(`/v1/compare?${new URLSearchParams({ a, b: id })}`);
      ask(`Operations ${a} and ${id}`, el("div", { class: "compare" }, el("table", {}, el("thead", {}, el("tr", {}, ["Property", a, id].map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, c.facts.map((f) => el("tr", { class: f.differ ? "differs" : "soft" }, el("th", { scope: "row" }, f.name), el("td", {}, reveal(f.a)), el("td", {}, reveal(f.b)))))),
        el("h3", {}, "Arguments"), drawDifference(c.arguments), el("h3", {}, "Result"), drawDifference(c.result)), [{ value: "", text: "Close" }]);
    });
  }

  /** Saves the messages of the filter as a file. */
  #export(format) {
    return attempt(async () => {
      const text = await getText(`/v1/export?${new URLSearchParams({ format, filter: store.filter })}`);
      const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
      el("a", { href: url, download: `wire.${format}` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
      toast(`wire.${format}: ${size(text.length)}`);
    });
  }

  async #inspectFrame(seq) {
    const selection = this.#selection;
    if (isShown(selection)) return;
    try {
      const text = await getText("/v1/frames/" + seq);
      if (selection !== this.#selection || this.signal.aborted) return;
      const f = parse(text), [, kind] = pegOf(f.status ?? "");
      const body = f.frame === undefined ? f.text ?? "" : JSON.stringify(JSON.parse(text).frame, null, 2);
      inspect(selection, oneLine(f.method ? f.method : f.kind), el("div", { class: "part" },
        el("p", { class: "mono lead" }, f.leg === "server" ? `dowel ${arrow(f)} ${oneLine(f.server ?? "–")}` : `${oneLine(f.client ?? "–")} ${arrow(f)} dowel`),
        facts([["Message", `${seq} · ${f.kind}`], ["Status", f.status ? el("span", { class: kind }, f.status) : ""], ["Operation", f.op ? el("a", { href: link("wire", { ...Object.fromEntries(new URLSearchParams(location.search)), sel: "op:" + f.op }) }, String(f.op?.text ?? f.op)) : ""],
          ["Time", clock(f.t)], ["Took", f.ms ? took(Number(f.ms?.text ?? f.ms)) : ""], ["Size", size(Number(f.size))], ["Leg", f.leg], ["Connection", f.conn], ["Revision", f.revision], ["Screens", momentButton(f.t)], ["Id", f.id === undefined ? "" : el("code", {}, reveal(JSON.stringify(f.id?.text ?? f.id)))]]),
        f.header ? el("details", {}, el("summary", {}, "HTTP fields ", el("span", { class: "count" }, Object.keys(f.header).length)), el("dl", { class: "facts mono" }, Object.entries(f.header).sort().map(([name, values]) => [el("dt", {}, reveal(name)), el("dd", {}, reveal(values.join(", ")))]))) : null,
        el("div", { class: "buttons spread" }, el("h3", {}, f.kind === "stray" ? "Printed text" : "JSON"), el("button", { class: "quiet", click: () => copy(body) }, "Copy")),
        f.frame === undefined ? el("pre", {}, reveal(f.text ?? "")) : tree(f.frame)), this.#closed);
    } catch (e) {
      this.#gone(selection, e);
    }
  }

  #gone(selection, e) {
    if (selection === this.#selection && !this.signal.aborted) inspect(selection, "Not kept", el("p", { class: "part" }, reveal(e.message)), this.#closed);
  }

  /** Folds or unfolds an operation. */
  #toggle(row, open) {
    const list = this.list;
    if (!list) return;
    if (row.parent && !open) { list.selected = row.parent; row = row.parent; }
    if (row.k !== "op" || !!row.open === open) { list.refresh(); return; }
    if (!open) {
      row.open = false;
      list.rows = list.rows.filter((r) => r.parent !== row);
      list.refresh();
      return;
    }
    attempt(async () => {
      const frames = (await get("/v1/operations/" + row.op)).frames.filter((f) => isShownAt(f.t));
      if (row.open || !list.rows.includes(row)) return;
      row.open = true;
      list.rows.splice(list.rows.indexOf(row) + 1, 0, ...frames.map((f, i) => ({ ...f, parent: row, last: i === frames.length - 1 })));
      list.follows = false;
      list.refresh();
      this.#drawBar();
    });
  }

  async #copy(row) {
    if (row.k !== "frame") return copy(`op:${row.op}`);
    return attempt(async () => copy(JSON.stringify(JSON.parse(await getText("/v1/frames/" + row.seq)).frame, null, 2)));
  }
}

/** Lines of a difference; long common parts are folded. */
function drawDifference(lines) {
  const near = (i) => lines.slice(Math.max(0, i - 3), i + 4).some((l) => l[0] !== " ");
  if (!lines.some((l) => l[0] !== " ")) return el("p", { class: "soft" }, lines.length ? "No difference." : "Neither has any.");
  return diff(lines.flatMap((l, i) => (near(i) ? [l] : i && near(i - 1) ? ["  …"] : [])));
}

/** An operation as the moment knew it: what ended later was open. */
const asOfMoment = (row) => {
  if (!moment() || row.k !== "op") return row;
  const hasEnded = row.ms !== undefined && Date.parse(row.start) + row.ms <= nowShown();
  return hasEnded ? { ...row } : { ...row, status: "pending", ms: undefined, error: undefined, received: 0, serverMs: 0, userMs: 0, dowelMs: 0 };
};

const idOf = (row) => (row.k === "op" ? "op:" + row.op : row.k === "frame" ? "frame:" + row.seq : "");

const filterLink = (key, value) => el("a", { href: link("wire", { q: `${key}:${quote(value)}` }), title: "Show only this" }, oneLine(value));

function frameLink(f) {
  const query = { ...Object.fromEntries(new URLSearchParams(location.search)), sel: "frame:" + f.seq };
  const peer = oneLine((f.leg === "server" ? f.server : f.client) ?? "–");
  return el("li", {}, el("a", { href: link("wire", query), class: "mono" }, el("span", { class: f.kind === "stray" ? "bad" : "leg-" + f.leg }, f.leg === "server" ? `dowel ${arrow(f)} ${peer}` : `${peer} ${arrow(f)} dowel`),
    el("span", { class: f.status ? pegOf(f.status)[1] : "" }, f.status || oneLine(f.method ?? f.kind)), el("span", { class: "soft number" }, f.ms === undefined ? size(f.size) : took(f.ms))));
}

/** The time of an operation, split. */
function timeBar(op) {
  const all = [["server", op.serverMs ?? 0], ["user", op.userMs ?? 0], ["dowel", op.dowelMs ?? 0]].filter(([, ms]) => ms > 0);
  if (all.length === 0) return null;
  return el("figure", { class: "time" }, el("div", { class: "time-bar", "aria-hidden": "true" }, all.map(([who, ms]) => {
    const part = el("i", { class: "time-" + who });
    part.style.flexGrow = String(ms);
    return part;
  })), el("figcaption", {}, all.map(([who, ms]) => el("span", {}, el("i", { class: "time-" + who, "aria-hidden": "true" }), `${who} ${took(ms)}`))));
}

customElements.define("dowel-wire", WireScreen);
