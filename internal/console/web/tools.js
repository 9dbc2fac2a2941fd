// @ts-check
// Tools, resources and prompts of all servers: find one, fill in its form, call it, read the result.
import { get, isEmbedded, post, postLines, session } from "./api.js";
import { ask, attempt, copy, cutText, el, fill, focusOn, later, moveFocus, oneLine, peg, reasonOf, redraw, reveal, toast } from "./dom.js";
import { clock, pegOf, plural, size, took } from "./format.js";
import { compareResults, followCall } from "./call.js";
import { Form, initial } from "./form.js";
import { parse as parseTree, tree } from "./json.js";
import { forget, longText } from "./result.js";
import { go, here, link, set } from "./route.js";
import { Screen } from "./screen.js";
import { store } from "./store.js";
import { parse, write } from "./value.js";

const kindWords = { tool: "tool", prompt: "prompt", resource: "resource", template: "template" };
const verbs = { tool: "Run", prompt: "Get", resource: "Read", template: "Read" };
/** @type {Record<string, [string, string]>} */
const watchPegs = { requested: ["◐", "wait"], acknowledged: ["●", "ok"], refused: ["○", "bad"], ended: ["◌", "soft"] };
const eras = ["2026-07-28", "2025-11-25"]; // the newest revision of each
const maxListed = 300; // of one server, until the rest is asked for

const pathOf = (i) => `tools/${[i.server, i.kind, i.name].map(encodeURIComponent).join("/")}`;
const same = (a, b) => a && b && a.server === b.server && a.kind === b.kind && a.name === b.name;
const itemQuery = (i) => new URLSearchParams({ server: i.server, kind: i.kind, name: i.name });

export class ToolsScreen extends Screen {
  #list = el("nav", { class: "items-list", "aria-label": "Tools, prompts and resources" });
  #pane = el("section", { class: "item-pane", "aria-label": "Item" });
  #items = [];
  #item = null; // its detail
  #loading = "";
  #query = "";
  #call = "";
  #error = "";
  #loaded = false;
  #history = [];
  #following = new AbortController();
  #listed = "";

  // of the item that is shown
  #form = null;
  #text = el("textarea");
  #isText = false;
  #verdict = el("div", { class: "issues", "aria-live": "polite" });
  #output = el("div", { class: "output" });
  #past = el("div", { class: "past" });
  #kept = el("div", { class: "past" });
  #saved = { calls: [], file: "", folder: "" };
  #run = el("button");
  #seconds = el("input");
  #meta = el("textarea");
  #watch = el("div", { class: "output" });
  #watching = /** @type {AbortController|null} */ (null);
  #checks = 0;
  #running = new Set(); // ids of calls that are shown

  connectedCallback() {
    this.build("Tools, prompts and resources", this.#list, this.#pane);
    this.on("status", () => {
      const now = JSON.stringify((store.status?.servers ?? []).map((s) => [s.name, s.status, s.tools, s.prompts, s.resources, s.changed?.length]));
      if (now !== this.#listed) { this.#listed = now; this.#load(); }
    });
    this.#load();
    this.#loadHistory();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.#following.abort();
    this.#watching?.abort();
    forget();
  }

  show(path, query) {
    const q = query.get("q") ?? "";
    if (q !== this.#query) { this.#query = q; this.#load(); }
    const wanted = path.length === 3 ? { server: path[0], kind: path[1], name: path[2] } : null, call = query.get("call") ?? "";
    const changed = this.#call !== call;
    this.#call = call;
    this.classList.toggle("has-item", !!wanted);
    if (!wanted) { this.#item = null; this.#loading = ""; this.#following.abort(); this.#drawNothing(); } else if (!same(wanted, this.#item) && this.#loading !== pathOf(wanted)) this.#open(wanted);
    else if (changed && this.#item) this.#follow(call);
    this.#drawList();
  }

  move(by) { moveFocus(this.#list, "a", by); }

  key(key) {
    if (key === "e" && this.#item) { focusOn(this.#pane, ".form textarea, .form select, .form button"); return true; }
    if (key === "r" && this.#item) { this.#start([""]); return true; }
    return false;
  }

  async #load() {
    const q = this.#query;
    try {
      const { items } = await get("/v1/catalog?" + new URLSearchParams({ q }));
      if (q !== this.#query) return;
      this.#items = items;
      this.#error = "";
    } catch (e) {
      this.#error = reasonOf(e);
    }
    this.#loaded = true;
    this.#drawList();
    if (!this.#item && !this.#loading) this.#drawNothing();
  }

  async #loadHistory() {
    try { this.#history = await get("/v1/calls"); } catch { this.#history = []; }
    try { this.#saved = await get("/v1/saved"); } catch (e) { toast(reasonOf(e), true); }
    this.#drawPast();
    if (!this.#item && !this.#loading) this.#drawNothing();
  }

  #drawList() {
    const groups = Map.groupBy(this.#items, (i) => i.server);
    const current = this.#item ?? (this.#loading ? null : undefined);
    redraw(this.#list, this.#error ? el("p", { class: "empty bad" }, reveal(this.#error)) : null,
      !this.#items.length && this.#loaded ? el("p", { class: "empty" }, this.#query ? "Nothing matches this search." : "No server offers anything now.") : null,
      [...groups].map(([server, all]) => el("section", {}, el("h2", {}, oneLine(server), el("span", { class: "count" }, plural(all.length, "item")), el("span", { class: "tokens", title: "Estimated cost of the definitions for a model" }, this.#tokens(all))),
        el("ul", {}, this.#listItems(all.slice(0, maxListed), current)), all.length > maxListed ? el("button", { class: "quiet", click: (e) => {
          const b = e.currentTarget;
          b.previousElementSibling?.append(...this.#listItems(all.slice(maxListed), current));
          b.remove();
        } }, `${all.length - maxListed} more`) : null)));
  }

  #tokens(all) {
    const n = all.reduce((sum, i) => sum + (i.tokens ?? 0), 0);
    return n ? `≈${n > 999 ? (n / 1000).toFixed(1) + "k" : n} tokens` : "";
  }

  #listItems(all, current) {
    return all.map((i) => el("li", {}, el("a", { href: link(pathOf(i), { q: this.#query }), "aria-current": same(i, current) ? "true" : undefined, data: { key: pathOf(i) }, title: i.name },
      el("span", { class: "item-name" }, oneLine(i.name)), i.hints?.includes("destructive") ? el("span", { class: "bad" }, "destructive") : null, i.kind === "tool" ? null : el("span", { class: "soft" }, kindWords[i.kind]))));
  }

  #drawNothing() {
    const tools = this.#items.filter((i) => i.kind === "tool").length;
    fill(this.#pane, el("div", { class: "empty" }, el("p", {}, this.#items.length ? `${plural(tools, "tool")}, ${this.#items.length - tools} prompts and resources. Choose one to try it. Type / to search by name, or by what a tool does.` : this.#loaded ? "Nothing is offered. The screen Servers says why." : "Waiting for dowel…")),
      el("div", { class: "past" }, this.#savedList(this.#saved.calls)), this.#history.length ? el("div", { class: "past" }, this.#pastList(this.#history.slice(0, 20), true)) : null);
  }

  async #open(name) {
    const at = pathOf(name);
    this.#loading = at;
    try {
      const item = await get("/v1/item?" + itemQuery(name));
      if (this.#loading !== at) return;
      this.#item = item;
    } catch (e) {
      if (this.#loading === at) fill(this.#pane, el("div", { class: "empty" }, el("p", {}, reveal(reasonOf(e))), el("p", {}, el("a", { href: link("tools") }, "All tools"))));
      return;
    } finally {
      if (this.#loading === at) this.#loading = "";
    }
    this.#drawItem();
    this.#drawList();
    this.#list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
    await this.#loadHistory();
    const from = here().query.get("from"), saved = this.#saved.calls.find((c) => c.name === here().query.get("saved"));
    if (this.#call) this.#follow(this.#call);
    else if (saved) this.#again({ seconds: 60, ...saved }, false);
    else if (from && /^\d+$/.test(from)) attempt(async () => this.#again({ seconds: 60, ...await get(`/v1/operations/${from}/call`) }, false));
  }

  #drawItem() {
    const i = this.#item;
    this.#following.abort();
    this.#watching?.abort();
    this.#watching = null;
    fill(this.#watch);
    this.#running.clear();
    this.#isText = !i.form;
    this.#form = i.form ? new Form(i.form, initial(i.form, true) ?? new Map(), { changed: () => this.#checkSoon(), open: (at) => post("/v1/form", { server: i.server, kind: i.kind, name: i.name, at }), complete: i.kind === "tool" ? undefined : (argument, value) => this.#complete(i, argument, value) }) : null;
    this.#text = el("textarea", { class: "raw", rows: 8, spellcheck: "false", "aria-label": "Arguments as JSON", input: () => this.#checkSoon() });
    this.#text.value = this.#form ? write(this.#form.value, "  ") : "{}";
    this.#seconds = el("input", { class: "seconds", value: "60", inputmode: "decimal", "aria-label": "Seconds without a sign of life, 0 for no limit" });
    this.#meta = el("textarea", { class: "raw", rows: 2, spellcheck: "false", "aria-label": "_meta as JSON", placeholder: "{}" });
    this.#run = el("button", { class: "strong run", click: () => (this.#running.size ? this.#cancel() : this.#start([""])) }, verbs[i.kind] ?? "Run");
    fill(this.#verdict);
    fill(this.#output);
    fill(this.#pane, el("div", { class: "item-head" }, el("a", { class: "back", href: link("tools", { q: this.#query }) }, "← all"), el("h2", {}, oneLine(i.name)),
      el("p", { class: "soft" }, oneLine(i.server), " · ", kindWords[i.kind], i.title ? ` · ${oneLine(i.title)}` : "", i.tokens ? ` · ≈${i.tokens} tokens` : "", (i.hints ?? []).map((h) => [" · ", el("span", { class: h === "destructive" ? "bad" : "" }, h)])),
      i.about ? cutText("about-item", i.about, 400) : null),
    session.readOnly ? el("p", { class: "soft part" }, "This console only reads, so it calls nothing.") : this.#arguments(i),
    this.#watch, this.#output, this.#kept, this.#past,
    later("definition", `Definition, ${size(i.definition.length)}`, () => [el("button", { class: "quiet", click: () => copy(i.definition) }, "Copy"), this.#definition(i.definition)]));
    this.#pane.scrollTop = 0;
    this.#showMode();
  }

  #definition(text) {
    try { return tree(parseTree(text)); } catch { return longText(text); }
  }

  #arguments(i) {
    const takes = !!i.form || !!i.formError;
    const mode = (isText, text) => el("button", { "aria-pressed": String(this.#isText === isText), data: { mode: isText ? "text" : "form" }, click: () => this.#setMode(isText) }, text);
    return el("div", { class: "arguments", keydown: (e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); this.#start([""]); } } },
      takes ? el("div", { class: "buttons spread" }, el("h3", {}, "Arguments"), el("div", { class: "choice", role: "group", "aria-label": "How to fill in" }, i.form ? mode(false, "Form") : null, mode(true, "JSON"))) : null,
      i.formError ? el("p", { class: "soft" }, "No form: ", oneLine(i.formError)) : null, i.checkError ? el("p", { class: "soft" }, "Arguments are not checked here: ", oneLine(i.checkError)) : null,
      takes ? [this.#form?.node, this.#text, this.#verdict] : null,
      el("div", { class: "buttons calling" }, this.#run, el("span", { class: "soft" }, "Ctrl+Enter"), el("button", { class: "quiet", title: `Call it twice, as a client of ${eras.join(" and of ")}, side by side`, click: () => this.#start(eras) }, "Both eras"), i.kind === "resource" ? el("button", { class: "quiet", "aria-pressed": "false", title: "Subscribe to its changes", click: (e) => this.#toggleWatch(e.currentTarget) }, "Watch") : null, i.kind === "tool" && !isEmbedded ? el("button", { class: "quiet", title: "Keep this call in a file of the project", click: () => this.#save() }, "Save…") : null, el("span", { class: "grow" }), el("label", { class: "limit" }, "gives up after ", this.#seconds, " s of silence")),
      el("details", { class: "meta" }, el("summary", {}, "_meta"), this.#meta));
  }

  /** Values that the server proposes for an argument; none if it cannot. */
  async #complete(i, argument, value) {
    const settled = Object.fromEntries([...this.#form?.value ?? []].filter(([name, text]) => name !== argument && typeof text === "string"));
    try { return (await post("/v1/complete", { server: i.server, kind: i.kind, name: i.name, argument, value, settled })).values; } catch { return []; }
  }

  /** Begins or ends to watch a resource. */
  async #toggleWatch(button) {
    const i = this.#item, ends = !!this.#watching;
    this.#watching?.abort();
    this.#watching = null;
    button.setAttribute("aria-pressed", String(!ends));
    if (ends) { fill(this.#watch); return; }
    const stop = this.#watching = new AbortController(), state = el("p", { role: "status" }), changes = el("ul", { class: "notes" });
    fill(this.#watch, el("h3", {}, "Subscription"), state, changes);
    const show = (e) => {
      if (e.k === "state") fill(state, peg(...watchPegs[e.state]), ` ${e.state}`, e.message ? `: ${oneLine(e.message)}` : "", el("span", { class: "soft" }, ` · ${clock(e.t)}`));
      else changes.prepend(el("li", {}, clock(e.t), e.k === "gap" ? " changes may be missing" : " changed"));
      while (changes.childElementCount > 50) changes.lastElementChild?.remove();
    };
    try {
      await postLines("/v1/watch", (batch) => batch.forEach(show), stop.signal, { server: i.server, kind: i.kind, name: i.name });
    } catch (e) {
      if (!stop.signal.aborted) show({ k: "state", state: "refused", message: reasonOf(e), t: Date.now() });
    }
    if (stop === this.#watching) { this.#watching = null; button.setAttribute("aria-pressed", "false"); }
  }

  /** Shows the form or the JSON; both have the same value. */
  #setMode(isText) {
    if (isText === this.#isText || !this.#form) return;
    if (!isText) {
      try {
        this.#form.draw(parse(this.#text.value || "{}"));
      } catch (e) {
        toast(`The form needs JSON: ${reasonOf(e)}`, true);
        return;
      }
    } else this.#text.value = write(this.#form.value, "  ");
    this.#isText = isText;
    this.#showMode();
    this.#check();
  }

  #showMode() {
    if (this.#form) this.#form.node.hidden = this.#isText;
    this.#text.hidden = !this.#isText;
    for (const b of /** @type {NodeListOf<HTMLElement>} */ (this.#pane.querySelectorAll("[data-mode]"))) b.setAttribute("aria-pressed", String((b.dataset.mode === "text") === this.#isText));
  }

  #value() { return this.#isText || !this.#form ? this.#text.value : write(this.#form.value); }

  #checkSoon() {
    clearTimeout(this.#checks);
    this.#checks = setTimeout(() => this.#check(), 300);
  }

  async #check() {
    const i = this.#item, text = this.#value();
    clearTimeout(this.#checks);
    if (!i || session.readOnly || !i.form && !i.formError) return;
    try {
      const v = await post("/v1/check", { server: i.server, kind: i.kind, name: i.name, arguments: text });
      if (i !== this.#item || text !== this.#value()) return;
      const issues = v.issues ?? [], rest = this.#isText || !this.#form ? issues.map((x) => `${x.path || "/"}: ${x.message}`) : this.#form.show(issues);
      fill(this.#verdict, v.ok ? el("p", { class: "ok" }, "✓ fits the schema") : null, v.error ? el("p", { class: "ask" }, "! ", oneLine(v.error)) : null, rest.map((m) => el("p", { class: "bad" }, "✗ ", oneLine(m))), v.more ? el("p", { class: "bad" }, "✗ and more") : null,
        issues.length && !rest.length ? el("p", { class: "bad" }, `✗ ${plural(issues.length, "field")} to mend; Run sends it all the same`) : null);
    } catch (e) {
      fill(this.#verdict, el("p", { class: "bad" }, oneLine(reasonOf(e))));
    }
  }

  /** Makes the call as a client of each revision; "" leaves the choice to dowel. @param {string[]} revisions */
  async #start(revisions) {
    const i = this.#item;
    if (!i || session.readOnly || this.#running.size) return;
    this.#check();
    const call = { server: i.server, kind: i.kind, name: i.name, arguments: this.#value(), meta: this.#meta.value.trim(), seconds: Number(this.#seconds.value) || 0 };
    try {
      const calls = await Promise.allSettled(revisions.map((revision) => post("/v1/calls", { ...call, revision })));
      const ids = calls.flatMap((c) => (c.status === "fulfilled" ? [c.value.id] : [])), failed = calls.find((c) => c.status === "rejected");
      if (ids.length) set({ call: ids.join() });
      if (failed && ids.length) toast(reasonOf(failed.reason), true);
      else if (failed) throw failed.reason;
    } catch (e) {
      fill(this.#output, el("p", { class: "bad part" }, reveal(reasonOf(e))));
    }
  }

  #cancel() { return attempt(() => Promise.all([...this.#running].map((id) => post(`/v1/calls/${id}/cancel`)))); }

  /** Shows the calls of the address as they go on: one, or the same call in both eras. @param {string} text their ids */
  async #follow(text) {
    this.#following.abort();
    this.#running.clear();
    forget();
    const stop = (this.#following = new AbortController()), ids = text.split(",").map(Number).filter(Boolean).slice(0, eras.length);
    if (!ids.length) { fill(this.#output); this.#drawRun(); return; }
    const panes = ids.map(() => el("section", { class: "era" })), verdict = el("p", { class: "verdict", role: "status" });
    fill(this.#output, el("div", { class: "eras" }, panes), verdict);
    this.#output.scrollIntoView({ block: "nearest" });
    const results = await Promise.all(ids.map((id, n) => followCall(id, panes[n], { signal: stop.signal, linkTo: (uri) => this.#resourceLink(uri), changed: (info) => {
      if (info.status === "pending" || info.status === "asked") this.#running.add(id);
      else this.#running.delete(id);
      this.#drawRun();
    } })));
    if (stop.signal.aborted) return;
    if (results.length > 1) verdict.textContent = compareResults(results);
    this.#running.clear();
    this.#drawRun();
    this.#loadHistory();
  }

  #drawRun() {
    const i = this.#item;
    if (!i) return;
    this.#run.textContent = this.#running.size ? "Cancel" : verbs[i.kind] ?? "Run";
    this.#run.classList.toggle("strong", !this.#running.size);
  }

  /** A link to a resource that a server lists. */
  #resourceLink(uri) {
    const found = this.#items.find((i) => i.kind === "resource" && i.server === this.#item?.server && i.name === uri);
    return found ? el("a", { href: link(pathOf(found)) }, reveal(uri)) : null;
  }

  /** Saves the call that is filled in. */
  async #save() {
    const i = this.#item;
    const name = el("input", { "aria-label": "Name of the call", value: here().query.get("saved") ?? i.name, maxlength: 80 });
    const answer = await ask("Save this call", el("div", {}, el("p", {}, el("label", {}, "Name ", name)), el("p", { class: "soft" }, reveal(`It goes into ${this.#saved.file} in ${this.#saved.folder}. A call of the same name is replaced. On the command line: dowel call --saved NAME`))), [{ value: "", text: "Cancel", kind: "quiet" }, { value: "save", text: "Save", kind: "strong" }]);
    if (answer !== "save") return;
    await attempt(async () => {
      const call = { name: name.value.trim(), server: i.server, tool: i.name, arguments: this.#value() }, { masked } = await post("/v1/saved", call);
      if (masked) {
        const agreed = await ask("Save a secret?", el("div", {}, el("p", {}, "The arguments have what looks like a secret. The file is meant to be shared, and has it as it is."), longText(masked)), [{ value: "", text: "Cancel", kind: "strong" }, { value: "save", text: "Save it all the same" }]);
        if (!agreed) return;
        await post("/v1/saved", { ...call, withSecrets: true });
      }
      toast(`Saved in ${this.#saved.file}`);
      await this.#loadHistory();
    });
  }

  #savedList(all) {
    if (!all.length) return null;
    return [el("h3", {}, "Saved calls"), el("ul", { class: "calls" }, all.map((c) => el("li", {}, el("span", { class: "peg" }), el("a", { href: link(pathOf({ server: c.server, kind: "tool", name: c.tool }), { saved: c.name }) }, oneLine(c.name)), el("code", {}, oneLine(c.arguments.slice(0, 200))), el("span", { class: "soft" }, `${oneLine(c.server)}.${oneLine(c.tool)}`),
      session.readOnly ? null : el("span", { class: "item-buttons" }, el("button", { class: "quiet", "aria-label": `Remove the saved call ${c.name}`, click: () => attempt(async () => { await post("/v1/saved/remove", { name: c.name }); toast(`${c.name} is removed`); await this.#loadHistory(); }) }, "remove")))))];
  }

  #drawPast() {
    fill(this.#kept, this.#item ? this.#savedList(this.#saved.calls.filter((c) => c.server === this.#item.server && c.tool === this.#item.name)) : null);
    const mine = this.#history.filter((c) => same(c, this.#item));
    fill(this.#past, this.#item && mine.length ? this.#pastList(mine.slice(0, 20), false) : null);
  }

  #pastList(all, isAll) {
    return [el("h3", {}, isAll ? "Calls from here" : "Calls before"), el("ul", { class: "calls" }, all.map((c) => {
      const [glyph, kind, word] = pegOf(c.status);
      return el("li", {}, el("span", { class: "peg " + kind, title: word }, el("span", { "aria-hidden": "true" }, glyph), el("span", { class: "sr" }, word)), el("a", { href: link(pathOf(c), { call: String(c.id), q: this.#query }), "aria-current": this.#call.split(",").includes(String(c.id)) ? "true" : undefined }, clock(c.start).slice(0, 8), c.revision ? ` ${c.revision}` : "", isAll ? ` ${oneLine(c.server)}.${oneLine(c.name)}` : ""),
        el("code", {}, oneLine(c.arguments.slice(0, 200))), el("span", { class: "soft number" }, took(c.ms)),
        isAll || session.readOnly ? null : el("span", { class: "item-buttons" }, el("button", { class: "quiet", "aria-label": `Run call ${c.id} again`, click: () => this.#again(c, true) }, "again"), el("button", { class: "quiet", "aria-label": `Edit call ${c.id}`, click: () => this.#again(c, false) }, "edit")));
    }))];
  }

  /** Fills in the arguments of a call, and runs it. */
  #again(c, runs) {
    this.#text.value = c.arguments;
    try {
      const value = parse(c.arguments);
      this.#form?.draw(value);
      this.#text.value = write(value, "  ");
    } catch {
      this.#isText = true;
    }
    this.#meta.value = c.meta ?? "";
    this.#seconds.value = String(c.seconds ?? 0);
    this.#showMode();
    if (runs) this.#start([c.revision ?? ""]);
    else {
      this.#check();
      focusOn(this.#pane, ".form:not([hidden]) textarea, .form:not([hidden]) select, .raw:not([hidden])");
    }
  }
}

customElements.define("dowel-tools", ToolsScreen);
