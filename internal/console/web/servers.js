// @ts-check
// Servers: their state with its cause and the next step, and the clients that use them.
import { get, isEmbedded, isShownAt, moment, nowShown, post, postLines, prefix, lines, serverPath, session } from "./api.js";
import { ask, attempt, closeDialog, command, el, fill, moveFocus, oneLine, peg, reasonOf, redraw, reveal, toast, webAddress } from "./dom.js";
import { age, clock, plural, shortClock, states, took } from "./format.js";
import { importServers } from "./import.js";
import { facts, inspect, isShown, tabs } from "./inspector.js";
import { Screen } from "./screen.js";
import { store } from "./store.js";
import { go, link } from "./route.js";

const needy = ["failed", "needs configuration", "needs trust", "needs authorization", "needs login"];

function groupOf(s) {
  if (needy.includes(s.status) || s.status === "starting" && s.problem && s.attempt) return 0;
  return s.status === "disabled" || s.status === "removed" ? 2 : 1;
}

const groups = ["Need you", "Running", "Off"];

function stateWord(s, now) {
  if (s.installing) return `installing, ${age(s.installing, now)}`;
  if (groupOf(s) === 0 && s.status === "starting") return "failed";
  return s.status;
}

/** The reason for a state that needs the user, and advice. */
function trouble(s) {
  if (groupOf(s) !== 0) return { reason: "", advice: "" };
  return { reason: s.problem || s.cause || "", advice: s.advice || "" };
}

export class ServersScreen extends Screen {
  #list = el("div", { class: "servers" });
  #clients = el("section", { class: "clients", "aria-label": "Clients" });
  #name = "";
  #tab = "";
  #filter = "";
  #walks = new Map();
  #log = [];
  #clientsDue = 0;

  connectedCallback() {
    this.build("Servers", this.#list, this.#clients);
    this.on("status", () => this.#draw());
    this.on("connection", () => this.#drawLater());
    this.on("rows", () => this.#loadClients(1000));
    this.on("log", (e) => { if (e.detail === this.#name && this.#tab === "output") this.#loadLog(); });
    this.tick(() => this.#drawLater());
    this.#loadClients(0);
  }

  show(path, query) {
    this.#name = path[0] ?? "";
    this.#tab = query.get("tab") ?? "";
    this.#filter = (query.get("q") ?? "").toLowerCase();
    if (this.#tab === "output") this.#loadLog();
    this.#draw();
  }

  move(by) { moveFocus(this.#list, "a.name", by); }

  #drawLater() {
    if (!document.hidden) this.#draw();
  }

  #draw() {
    const status = store.status;
    if (!status) {
      fill(this.#list, el("p", { class: "empty" }, "Waiting for dowel…"));
      return;
    }
    const all = status.servers.filter((s) => !this.#filter || `${s.name} ${s.status} ${s.title ?? ""} ${s.origin ?? ""}`.toLowerCase().includes(this.#filter));
    redraw(this.#list, (status.problems ?? []).map((p) => el("p", { class: "banner bad" }, peg("○", "bad"), " ", reveal(p), moment() ? "" : " dowel keeps its last configuration.")),
      groups.map((title, g) => this.#drawGroup(title, all.filter((s) => groupOf(s) === g))), this.#drawEmpty(status, all));
    this.#inspect();
  }

  #drawEmpty(status, all) {
    if (all.length) return null;
    if (status.servers.length) return el("p", { class: "empty" }, "No server matches this filter.");
    if (moment()) return el("p", { class: "empty" }, "No server is known of then.");
    if (isEmbedded) return el("p", { class: "empty" }, "The program has no servers.");
    return el("div", { class: "empty" }, el("p", {}, "You have no servers yet. Copy those of your other tools, or add one:"),
      session.readOnly ? el("p", {}, command("dowel import")) : el("p", {}, el("button", { class: "strong", data: { key: "import" }, click: importServers }, "Import from other tools…")), el("p", {}, command("dowel servers add everything -- npx -y @modelcontextprotocol/server-everything")));
  }

  #drawGroup(title, servers) {
    if (servers.length === 0) return null;
    return el("section", { "aria-label": title }, el("h2", {}, title, el("span", { class: "count" }, servers.length)), el("ul", {}, servers.map((s) => this.#drawServer(s))));
  }

  #drawServer(s) {
    const now = nowShown(), word = stateWord(s, now), [glyph, kind] = groupOf(s) === 0 ? states[s.status === "starting" ? "failed" : s.status] : states[s.status] ?? ["·", "soft"];
    const { reason, advice } = trouble(s);
    const offers = [[s.tools, "tool"], [s.prompts, "prompt"], [s.resources, "resource"]].filter(([n]) => n).map(([n, one]) => plural(n, one)).join("  ");
    const note = s.changed ? `${plural(s.changed.length, "definition")} changed` : s.quarantined ? `${plural(s.quarantined.length, "item")} left out` : s.note;
    return el("li", { class: `server${s.name === this.#name ? " selected" : ""}${kind === "bad" ? " failing" : ""}` },
      peg(glyph, kind),
      el("a", { class: "name", href: link("servers/" + encodeURIComponent(s.name)), data: { key: "n" + s.name }, title: s.name }, oneLine(s.name)),
      el("span", { class: "state " + kind }, word),
      el("span", { class: "revision" }, s.revision ? `${s.revision}` : "", s.era === "legacy" ? el("span", { class: "soft" }, " legacy") : null),
      el("span", { class: "offers" }, groupOf(s) === 2 ? "" : offers || (s.status === "ready" ? "offers nothing" : ""), note ? el("span", { class: "note" }, oneLine(note)) : null),
      el("span", { class: "actions" }, this.#actions(s, true)),
      reason ? el("p", { class: "reason" }, reveal(reason)) : null,
      advice ? el("p", { class: "advice" }, "→ ", reveal(advice)) : null,
      s.next && groupOf(s) === 0 ? el("p", { class: "advice soft" }, `Attempt ${s.attempt} failed. The next one is at ${shortClock(s.next)}.`) : null);
  }

  #actions(s, isShort) {
    if (session.readOnly) return null;
    const button = (text, click, kind = "") =>
      el("button", { class: kind, data: { key: text + s.name }, "aria-label": `${text.replace("…", "")} ${s.name}`, click }, text);
    const restart = button("Restart", () => this.#change(s, "restart"), isShort && groupOf(s) !== 0 ? "quiet" : "");
    const off = isEmbedded ? null : button("Disable", () => this.#change(s, "disable"), "quiet");
    switch (isEmbedded ? "" : s.status) {
      case "disabled": return button("Enable", () => this.#change(s, "enable"));
      case "needs trust": return [button("What would run…", () => this.#trust(s), "strong"), isShort ? null : off];
      case "needs configuration": return isShort ? null : off;
      case "needs login": return [button("Log in…", () => (/^https?:\/\//.test(s.login ?? "") ? this.#openLogin(s) : this.#logIn(s)), "strong"), isShort ? null : off];
    }
    return isShort ? (groupOf(s) === 0 ? [el("a", { class: "button", href: link("servers/" + encodeURIComponent(s.name), { tab: "doctor" }) }, "Why?"), restart] : restart) : [restart, off];
  }

  #change(s, verb) {
    return attempt(async () => {
      await post(`${serverPath(s.name)}/${verb}`);
      toast({ enable: `${s.name} is on`, disable: `${s.name} is off`, restart: `${s.name} restarts` }[verb] ?? verb);
    });
  }

  async #openLogin(s) {
    const answer = await ask(`${s.name} wants you to log in`, el("div", {}, el("p", {}, "Its process gave this address. Look at the name of the site before you go there."), webAddress(s.login)), [{ value: "", text: "Cancel", kind: "quiet" }, { value: "open", text: "Open it", kind: "strong" }]);
    if (answer === "open") window.open(s.login, "_blank", "noopener,noreferrer");
  }

  /** Logs in at a server: its authorization server's page opens in a window of its own. */
  #logIn(s) {
    const stop = new AbortController();
    let shows = false, hasEnded = false;
    this.signal.addEventListener("abort", () => stop.abort());
    const open = async (page) => {
      shows = true;
      const answer = await ask(`Log in at ${s.name}`, el("div", {}, el("p", {}, "Look at the name of the site before you go there."), webAddress(page.url), el("p", { class: "soft" }, `Afterwards the browser comes back to port ${page.port} of the machine of dowel. From another machine, forward it first: `, command(`ssh -L ${page.port}:127.0.0.1:${page.port} HOST`))),
        [{ value: "", text: "Cancel", kind: "quiet" }, { value: "open", text: "Open it", kind: "strong" }]);
      shows = false;
      if (hasEnded) return;
      if (answer !== "open") { stop.abort(); return; }
      window.open(page.url, "_blank", "noopener,noreferrer");
      toast("Waiting for the login…");
    };
    const end = (error) => {
      hasEnded = true;
      if (shows) closeDialog();
      toast(error ? `${s.name}: ${error}` : `You are logged in at ${s.name}`, !!error);
    };
    return attempt(async () => {
      try {
        await postLines(serverPath(s.name) + "/login", (batch) => batch.forEach((e) => (e.k === "page" ? open(e.page) : end(e.error))), stop.signal);
      } catch (e) { if (!stop.signal.aborted) throw e; }
    });
  }

  /** Shows what would run, and asks. */
  #trust(s) {
    return attempt(async () => {
      const q = await get(serverPath(s.name) + "/trust");
      const list = (all) => el("ul", { class: "mono factlist" }, all.map((f) => el("li", {}, reveal(f))));
      const body = el("div", {}, el("p", {}, "It came with the project and would run as you, with all your rights."), el("p", { class: "soft mono" }, reveal(q.file)),
        q.changes ? [el("h3", {}, "Changed since you allowed it"), list(q.changes)] : null, el("h3", {}, "What would run"), list(q.facts));
      const answer = await ask(`May ${s.name} run?`, body, [{ value: "", text: "Not now", kind: "quiet" },
        ...(q.hasFiles ? [{ value: "folder", text: "Allow, whatever its code becomes" }] : []), { value: "version", text: q.hasFiles ? "Allow this version" : "Allow", kind: "strong" }]);
      if (answer !== "version" && answer !== "folder") return;
      await post(serverPath(s.name) + "/trust", { seen: q.seen, folder: answer === "folder" });
      toast(`${s.name} is allowed`);
    });
  }

  #inspect() {
    const s = store.status?.servers.find((s) => s.name === this.#name);
    if (!s) return;
    const at = "servers/" + encodeURIComponent(s.name), on = this.#tab;
    const parts = { "": () => this.#overview(s), doctor: () => this.#doctor(s), output: () => this.#output(s) };
    const [glyph, kind] = states[s.status] ?? ["·", "soft"];
    const title = [peg(glyph, kind), " ", oneLine(s.name)];
    if (isShown("server " + s.name + on) && on !== "") return; // they draw themselves
    inspect("server " + s.name + on, title, el("div", {},
      tabs([{ text: "Overview", href: link(at), isOn: on === "" }, { text: "Doctor", href: link(at, { tab: "doctor" }), isOn: on === "doctor" },
        { text: "Output", href: link(at, { tab: "output" }), isOn: on === "output" }, { text: "Wire", href: link("wire", { q: `server:${quote(s.name)}` }), isOn: false }]),
      (parts[/** @type {keyof parts} */ (on)] ?? parts[""])()), () => go("servers"));
  }

  #overview(s) {
    const { reason, advice } = trouble(s);
    return el("div", { class: "part" }, el("div", { class: "buttons" }, this.#actions(s, false)),
      reason ? el("p", { class: "reason" }, reveal(reason)) : null, advice ? el("p", { class: "advice" }, "→ ", reveal(advice)) : null,
      facts([["State", `${stateWord(s, nowShown())} for ${age(s.since)}`], ["Cause", reason === s.cause ? "" : reveal(s.cause ?? "")], ["Attempts", s.next ? `${s.attempt} failed; the next one is at ${shortClock(s.next)}` : ""],
        ["Server", reveal(s.title ?? "")], ["Revision", [s.revision, s.era].filter(Boolean).join(" ")],
        ["Offers", s.tools + s.prompts + s.resources ? [plural(s.tools, "tool"), ", ", plural(s.prompts, "prompt"), ", ", plural(s.resources, "resource")] : ""],
        ["Starts", s.origin ? el("code", {}, reveal(s.origin)) : ""], ["From", reveal(s.source ?? "")], ["Note", reveal(s.note ?? "")]]),
      s.quarantined?.length ? [el("h3", {}, "Left out"), el("ul", { class: "plain" }, s.quarantined.map((q) => el("li", {}, `${q.kind} `, el("code", {}, reveal(q.name)), ": ", reveal(q.reason))))] : null,
      s.changed?.length ? [el("h3", {}, "Changed definitions"), s.changed.map((c) => this.#changed(c)), session.readOnly ? isEmbedded ? null : el("p", { class: "soft" }, "Accept them with ", command(`dowel trust --definitions ${s.name}`)) :
        el("div", { class: "buttons" }, el("button", { class: "strong", click: () => attempt(() => post(serverPath(s.name) + "/accept", { digests: s.changed.map((c) => c.digest) })) }, "Accept these definitions"))] : null);
  }

  #changed(c) {
    return el("details", {}, el("summary", {}, `${c.kind} `, el("code", {}, reveal(c.localName ?? "")), el("span", { class: "soft" }, c.time ? ` seen ${age(c.time)} ago` : "")),
      diff(c.lines ?? []));
  }

  #doctor(s) {
    const node = el("div", { class: "part" });
    const walk = this.#walks.get(s.name) ?? { steps: [], runs: false, error: "" };
    this.#walks.set(s.name, walk);
    walk.node = node;
    this.#drawWalk(s, walk);
    return node;
  }

  #drawWalk(s, walk) {
    const marks = { ok: ["✓", "ok"], warning: ["!", "ask"], failed: ["✗", "bad"], skipped: ["–", "soft"] };
    fill(walk.node, el("p", { class: "soft" }, "Walks from the entry to a working connection, with a process or connection of its own, and stops at the step that fails."),
      session.readOnly ? el("p", { class: "soft" }, "This console only reads.", isEmbedded ? null : [" On the command line: ", command("dowel doctor " + s.name)]) :
        el("div", { class: "buttons" }, el("button", { class: walk.steps.length ? "" : "strong", disabled: walk.runs, click: () => this.#walk(s, walk) }, walk.runs ? "Walking…" : walk.steps.length ? "Walk again" : "Walk through the steps")),
      el("ol", { class: "walk", "aria-live": "polite" }, walk.steps.map((step) => {
        const [mark, kind] = marks[step.status] ?? ["·", "soft"];
        return el("li", {}, peg(mark, kind), el("div", {}, el("strong", {}, step.step), el("span", { class: "sr" }, ` ${step.status}`), step.ms >= 1 ? el("span", { class: "took" }, took(step.ms)) : null,
          step.detail ? el("p", { class: "detail" }, reveal(step.detail)) : null, step.stderr?.length ? el("pre", {}, step.stderr.map(reveal).join("\n")) : null, step.advice ? el("p", { class: "advice" }, "→ ", reveal(step.advice)) : null));
      })), walk.error ? el("p", { class: "bad" }, walk.error) : null);
  }

  async #walk(s, walk) {
    Object.assign(walk, { steps: [], runs: true, error: "" });
    this.#drawWalk(s, walk);
    try {
      await postLines(serverPath(s.name) + "/doctor", (steps) => { walk.steps.push(...steps); this.#drawWalk(s, walk); }, this.signal);
    } catch (e) {
      walk.error = reasonOf(e);
    }
    walk.runs = false;
    this.#drawWalk(s, walk);
  }

  #outputNode = el("div", { class: "part" });

  #output(_) {
    this.#drawLog();
    return this.#outputNode;
  }

  #drawLog() {
    const box = this.#outputNode.querySelector(".log");
    const isAtEnd = !box || box.scrollTop + box.clientHeight >= box.scrollHeight - 30;
    const rows = this.#log.map((e) => el("div", { class: e.kind }, el("time", { datetime: e.time }, shortClock(e.time)), " ",
      e.kind === "state" ? el("span", { class: (states[e.status] ?? ["", "soft"])[1] }, `${e.status}${e.cause ? ": " + oneLine(e.cause) : ""}`) : reveal(e.line ?? "")));
    fill(this.#outputNode, rows.length ? el("div", { class: "log", tabindex: 0, role: "log", "aria-label": "Output" }, rows) : el("p", { class: "empty" }, "It has written nothing to stderr yet."),
      el("p", { class: "soft" }, "Its stderr and states, the last 500. What it prints on stdout that is no message: ", el("a", { href: link("wire", { q: `kind:stray server:${quote(this.#name)}`, rows: "frames" }) }, "strays in Wire"), "."));
    const now = this.#outputNode.querySelector(".log");
    if (now && isAtEnd) now.scrollTop = now.scrollHeight;
  }

  async #loadLog() {
    const name = this.#name;
    const log = [];
    try {
      await lines(serverPath(name) + "/logs", { signal: this.signal }, (batch) => log.push(...batch));
    } catch { return; }
    if (name !== this.#name) return;
    this.#log = log.filter((e) => isShownAt(e.time));
    this.#drawLog();
  }

  #loadClients(delay) {
    if (this.#clientsDue) return;
    this.#clientsDue = setTimeout(async () => {
      this.#clientsDue = 0;
      try { this.#drawClients(await get("/v1/clients")); } catch { /* the stream tells that dowel is gone */ }
    }, delay);
  }

  #drawClients(all) {
    fill(this.#clients, el("h2", {}, "Clients", all.length ? el("span", { class: "count" }, all.length) : null),
      all.length ? el("ul", {}, all.map((c) => el("li", { class: "client" }, peg(c.open ? "◐" : "●", (c.open ? "wait" : "soft")),
        el("a", { class: "name", href: link("wire", { q: `client:${quote(c.name)}` }) }, oneLine(c.name)), el("span", { class: "revision" }, c.revision ?? ""),
        el("span", { class: "doing" }, c.open ? c.open.map((o) => el("a", { href: link("wire", { sel: "op:" + o.op }), class: "mono" }, oneLine(o.name || o.method), o.server ? el("span", { class: "soft" }, ` ${oneLine(o.server)}`) : null)) : el("span", { class: "soft" }, `idle, seen ${age(c.seen)} ago`)),
        el("span", { class: "soft number" }, c.tokens ? el("span", { title: "Estimated cost of the definitions of tools that it got" }, `≈${c.tokens.toLocaleString("en")} tokens · `) : null, plural(c.operations, "operation"))))) :
        el("p", { class: "empty" }, "No client has sent anything yet.", isEmbedded ? null : [" Set one up with ", command("dowel export --to claude-code"), ", or try ", command("dowel tools")]));
  }
}

/** Differences. */
export const diff = (lines) => el("pre", { class: "diff", tabindex: 0 }, lines.map((l) => el("span", { class: l[0] === "+" ? "added" : l[0] === "-" ? "removed" : "" }, reveal(l), "\n")));

/** A value of a filter. */
export const quote = (text) => (/^[\w.@/#-]+$/.test(text) ? text : `"${text.replace(/["\\]/g, "\\$&")}"`);

customElements.define("dowel-servers", ServersScreen);
