// @ts-check
// Asks: the open questions of all servers, to all clients. The first answer counts, from wherever it comes.
import { get, post, session } from "./api.js";
import { attempt, cutText, el, fill, focusOn, moveFocus, oneLine, peg, reasonOf, reveal, toast, webAddress } from "./dom.js";
import { age, plural, shortClock } from "./format.js";
import { parseTree, tree } from "./json.js";
import { Form, initial } from "./form.js";
import { link } from "./route.js";
import { quote } from "./servers.js";
import { Screen } from "./screen.js";

const maxMessage = 4000;

/** A question with its form and its buttons. */
export class Question {
  #fault = el("p", { class: "bad", role: "alert" });
  #time = el("span", { class: "soft number" });
  #form = null;
  #reason = el("input", { type: "text", placeholder: "Reason, which the model reads", "aria-label": "Reason of a refusal", maxlength: 2000 });
  isSent = false; // an answer, by this page

  /** @param {boolean} [isAlone] shows where it comes from */
  constructor(ask, isAlone) {
    this.ask = ask;
    if (ask.form && ask.kind === "form") this.#form = new Form(ask.form, initial(ask.form, true) ?? new Map(), { changed: () => {}, open: () => Promise.reject(new Error("forms of questions are flat")) });
    this.node = el("section", { class: "ask-box", tabindex: -1, "aria-label": `Question ${ask.id} of ${oneLine(ask.server || "a server")}`, data: { ask: ask.id, key: "ask" + ask.id }, keydown: (e) => this.#onKey(e) },
      isAlone ? this.#head() : null, this.#body(),
      ask.formError ? el("p", { class: "soft" }, "No form: ", oneLine(ask.formError)) : null, this.#form?.node, this.#fault, this.#buttons());
    this.tick();
  }

  /** Who asks whom. */
  #head() {
    const { server, client, name, call, approval } = this.ask;
    if (approval) return el("div", { class: "ask-head" }, el("h2", {}, peg("◆", "ask"), " ", oneLine(name || server || "A server")), el("p", {}, oneLine(client), name ? " asks before it runs this tool" : " asks whether this server may use its model", approval.effect ? [", which is ", el("strong", {}, oneLine(approval.effect))] : null,
      approval.session ? el("span", { class: "to-chat" }, " · ", el("a", { href: link("chat/" + encodeURIComponent(approval.session)) }, "its conversation")) : null), this.#time);
    return el("div", { class: "ask-head" }, el("h2", {}, peg("◆", "ask"), " ", oneLine(server || "A server")), el("p", {}, name ? ["asks during ", el("code", {}, oneLine(name)), " of "] : "asks ", el("a", { href: link("wire", { q: `client:${quote(client ?? "")}` }) }, call ? "this console" : oneLine(client || "a client"))), this.#time);
  }

  #body() {
    const { kind, message = "", url, approval } = this.ask;
    if (approval) return [approval.changes ? [el("p", { class: "bad" }, "The server has changed this tool since you allowed it:"), el("pre", { class: "text", tabindex: 0 }, reveal(approval.changes.join("\n")))] : null, message ? cutText("ask-text", message, maxMessage) : null, approval.arguments ? this.#arguments(approval.arguments) : null];
    if (kind === "sampling") return [el("p", {}, "It asks the client's model, which may ask its user."), el("details", {}, el("summary", {}, "What it asks the model"), el("pre", { class: "text", tabindex: 0 }, reveal(message)))];
    return [cutText("ask-text", message, maxMessage), url ? webAddress(url) : null];
  }

  #arguments(text) {
    try { return tree(parseTree(text)); } catch { return cutText("ask-text", text, maxMessage); }
  }

  #approvalButtons() {
    const { server, name } = this.ask, allow = (text, scope, kind) => el("button", { class: kind ?? "", click: () => this.answer("accept", scope) }, text);
    return [el("div", { class: "buttons" }, allow("Allow", "", "strong"), name ? allow("Allow this tool for the session", "tool") : null, server ? allow(`Allow all of ${oneLine(server).slice(0, 40)} for the session`, "server") : null),
      el("div", { class: "buttons refuse" }, el("button", { click: () => this.answer("decline") }, "Refuse"), this.#reason), this.ask.chat ? null : el("p", { class: "soft note-below" }, `${oneLine(this.ask.client)} asks too. The first answer counts.`)];
  }

  #buttons() {
    const { obstacle, url, stays, client } = this.ask, isWeb = /^https?:\/\//i.test(url ?? "");
    if (obstacle) return el("p", { class: "soft" }, obstacle);
    if (session.readOnly) return null;
    if (this.ask.approval) return this.#approvalButtons();
    return [el("div", { class: "buttons" }, url && !isWeb ? null : el("button", { class: "strong", click: () => { if (isWeb) window.open(url, "_blank", "noopener,noreferrer"); this.answer("accept"); } }, isWeb ? "Open it" : "Answer"),
      el("button", { click: () => this.answer("decline") }, "Decline"), el("button", { class: "quiet", click: () => this.answer("cancel") }, "Dismiss")),
    stays ? el("p", { class: "soft note-below" }, `${oneLine(client || "The client")} asks too. It gets the result when its own question is closed.`) : null];
  }

  async answer(action, scope = "") {
    this.isSent = true;
    try {
      await post(`/v1/asks/${this.ask.id}`, { action, scope, reason: this.#reason.value, content: this.#form && action === "accept" ? this.#form.text : "" });
    } catch (e) {
      this.isSent = false;
      this.#fault.textContent = oneLine(reasonOf(e));
    }
  }

  #onKey(e) {
    if (e.key === "Enter" && e.target === this.#reason) return this.answer("decline");
    if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey) || this.ask.obstacle || session.readOnly) return;
    e.preventDefault();
    e.stopPropagation();
    this.answer("accept");
  }

  /** Focuses its first field or button. */
  edit() { focusOn(this.node, ".control textarea, .control input, .control select, .control button, .buttons button"); }

  /** Shows how long it has waited. */
  tick() {
    const { since, expires } = this.ask;
    fill(this.#time, since ? `${age(since)} ago` : "", expires ? ` · the call fails at ${shortClock(expires).slice(0, 5)}` : " · waits until you answer");
  }
}

/** Questions that come and go. */
export class Questions {
  #open = new Map();

  constructor(node) { this.node = node; }

  /** @returns {Question[]} */
  get all() { return [...this.#open.values()]; }
  get first() { return this.all[0]; }

  /** Shows these questions. One that has the focus passes it on before it goes. */
  update(asks) {
    const now = new Set(asks.map((a) => a.id));
    for (const [id, q] of this.#open) {
      if (now.has(id)) continue;
      if (q.node.contains(document.activeElement)) {
        moveFocus(this.node, ".ask-box:not([hidden])", 1);
        if (!q.isSent) toast("It was answered elsewhere, or its call has ended.", true);
      }
      q.node.remove();
      this.#open.delete(id);
    }
    for (const ask of asks) {
      if (this.#open.has(ask.id)) continue;
      const q = new Question(ask, true);
      this.#open.set(ask.id, q);
      this.node.append(q.node);
    }
  }
}

export class AsksScreen extends Screen {
  #bar = el("div", { class: "bar" });
  #questions = new Questions(el("div", { class: "asks-list" }));
  #empty = el("div", { class: "empty" });
  #closed = el("section", { class: "closed", "aria-label": "Closed" });
  #all = null;
  #filter = "";

  connectedCallback() {
    this.build("Asks", this.#bar, this.#questions.node, this.#empty, this.#closed);
    this.on("asks", () => this.#load());
    this.tick(() => { for (const q of this.#questions.all) q.tick(); });
    this.#load();
  }

  show(_, query) {
    this.#filter = (query.get("q") ?? "").toLowerCase();
    this.#draw();
  }

  move(by) { moveFocus(this.#questions.node, ".ask-box:not([hidden])", by); }

  key(key) {
    if (key !== "e" && key !== "Enter") return false;
    const all = this.#questions.all.filter((q) => !q.node.hidden), q = all.find((q) => q.node.contains(document.activeElement)) ?? all[0];
    if (key === "Enter" && q?.node !== document.activeElement) return false;
    q?.edit();
    return !!q;
  }

  async #load() {
    const all = await attempt(() => get("/v1/asks"));
    if (!all) return;
    this.#all = all;
    this.#questions.update(all.asks);
    this.#draw();
  }

  #draw() {
    if (!this.#all) return;
    const { answersForAll, closed = [] } = this.#all;
    let shown = 0;
    const { all } = this.#questions;
    for (const { node, ask } of all) {
      node.hidden = !`${ask.server} ${ask.client} ${ask.name} ${ask.message}`.toLowerCase().includes(this.#filter);
      if (!node.hidden) shown++;
    }
    const choice = el("input", { type: "checkbox", checked: answersForAll, disabled: session.readOnly, data: { key: "all" }, change: () => attempt(() => post("/v1/asks", { answersForAll: choice.checked })) });
    const focused = this.#bar.contains(document.activeElement);
    fill(this.#bar, el("span", { class: "soft number" }, plural(all.length, "open question")), el("span", { class: "grow" }), el("label", { class: "check" }, choice, " Ask here for clients that cannot ask"));
    if (focused) choice.focus();
    this.#empty.hidden = shown > 0;
    fill(this.#empty, all.length ? el("p", {}, "No question matches this filter.") : [el("p", {}, "No server asks anything now, and no agent waits for an approval. A question that a server asks during a call, of whichever client, appears here and in the client. The first answer counts."),
      el("p", {}, "Try it: ", el("a", { href: link("tools", { q: "elicitation" }) }, "tools that ask"), ". Clients that cannot show a question make such calls fail, unless you choose to be asked here.")]);
    this.#closed.hidden = closed.length === 0;
    fill(this.#closed, el("h2", {}, "Answered lately"), el("ul", { class: "calls" }, closed.map((r) => el("li", {}, peg(r.outcome === "accept" ? "●" : "◌", r.outcome === "accept" ? "ok" : "soft"),
      el("span", { class: "mono" }, shortClock(r.time)), el("span", { class: "who" }, r.method === "approval" ? oneLine(r.name || r.server || "") : `${oneLine(r.server ?? "")}.${oneLine(r.name ?? "")}`), el("code", {}, oneLine(r.reason ?? "").slice(0, 300)), el("span", {}, (r.method === "approval" && { accept: "allowed", decline: "refused" }[r.outcome]) || words[r.outcome] || oneLine(r.outcome), r.by === "console" ? " here" : r.by ? ` in ${oneLine(r.client || "its client")}` : "")))));
  }
}

const words = { accept: "answered", decline: "declined", cancel: "dismissed", unanswered: "not answered" };

customElements.define("dowel-asks", AsksScreen);
