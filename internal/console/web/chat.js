// @ts-check
// Chat: the conversations of the agent, live and past, step by step.
import { get, getText, isShownAt, lines, moment, post, session } from "./api.js";
import { Questions } from "./asks.js";
import { attempt, command, el, fill, later, moveFocus, oneLine, peg, reasonOf, redraw, reveal } from "./dom.js";
import { age, clock, plural, shortClock, took } from "./format.js";
import { facts, inspect, isShown } from "./inspector.js";
import { parse, parseTree, tree } from "./json.js";
import { go, link, set } from "./route.js";
import { Screen } from "./screen.js";

const chatPath = (id, more = "") => `/v1/chats/${encodeURIComponent(id)}${more}`;
const when = (t) => `${t.slice(0, 10)} ${shortClock(t).slice(0, 5)}`;

/** @type {Record<string, string>} */
const modes = { ask: "Ask before tools that change something", "read-only": "Read-only tools alone, without questions", none: "No tools" };

const inline = (text) => text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*|^#{1,4} .*$)/m).map((bit, j) =>
  !(j % 2) ? bit : bit[0] === "`" ? el("code", {}, bit.slice(1, -1)) : el("strong", {}, bit[0] === "#" ? bit.replace(/^#+ /, "") : bit.slice(2, -2)));

/** Text of a model: code, headings, lists and strong words are drawn, everything else stays as it is. */
export function prose(text) {
  const node = el("div", { class: "prose" });
  reveal(text).split(/^```.*$/m).forEach((part, i) => {
    part = part.replace(/^\n|\n$/g, "");
    if (i % 2) { if (part) node.append(el("pre", { class: "text", tabindex: 0 }, part)); return; }
    for (const block of part.split(/\n{2,}|\n(?=[ \t]*(?:[-*+]|\d{1,9}[.)]) )/)) {
      const [, indent, sign, words] = /^([ \t]*)([-*+]|\d{1,9}[.)]) ([^]*)$/.exec(block) ?? [], tag = sign?.length > 1 ? "ol" : "ul";
      if (!sign) { if (block.trim()) node.append(el("p", {}, inline(block))); continue; }
      if (node.lastElementChild?.localName !== tag) node.append(el(tag, {}));
      node.lastElementChild?.append(el("li", { class: indent.length > 1 ? "deep" : "", value: tag === "ol" ? parseInt(sign) : undefined }, inline(words)));
    }
  });
  return node;
}

/** @type {Record<string, [string, string, string]>} */
const callPegs = { ok: ["●", "ok", "done"], error: ["○", "bad", "failed"], refused: ["◌", "ask", "not run"], running: ["◐", "wait", "runs"], lost: ["◌", "soft", "has no result"], waiting: ["◆", "ask", "waits"] };

export class ChatScreen extends Screen {
  #list = el("nav", { class: "items-list", "aria-label": "Conversations" });
  #pane = el("section", { class: "item-pane", tabindex: 0, "aria-label": "Conversation" });
  #head = el("div", { class: "item-head" });
  #turns = el("ol", { class: "turns" });
  #id = "";
  #chat = null;
  #nodes = [];
  #filter;
  #stop = new AbortController();
  #models = { models: [], problem: "…" };
  #draft = el("div", { class: "turn reply", hidden: true });
  #asks = new Questions(el("div", { "aria-live": "polite" }));
  #note = el("p", { class: "bad", role: "alert" });
  #text = el("textarea", { rows: 2, "aria-label": "Message", placeholder: "Write to the model", keydown: (e) => { if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); this.#send(); } } });
  #model = el("select", { "aria-label": "Model" });
  #mode = el("select", { "aria-label": "Tools" }, Object.entries(modes).map(([value, text]) => el("option", { value }, text)));
  #kept = el("span", { class: "soft" });
  #choices = el("span", { class: "buttons" }, this.#model, this.#mode);
  #sendButton = el("button", { class: "strong", click: () => this.#send() }, "Send");
  #stopButton = el("button", { title: "The conversation until then is kept (x)", click: () => this.#stopTurn() }, "Stop");
  #compose = el("div", { class: "compose" }, this.#note, this.#text, el("div", { class: "buttons" }, this.#sendButton, this.#stopButton, this.#choices, this.#kept, el("span", { class: "soft" }, "Enter sends, Shift+Enter begins a line")));
  #drafting = "";
  /** @type {Map<string, string>} */
  #typed = new Map(); // what is not sent yet, by conversation
  #failed = new Map(); // why the last message was not sent, by conversation

  connectedCallback() {
    this.build("Chat", this.#list, this.#pane);
    this.on("chats", () => this.#load());
    this.on("asks", () => this.#loadAsks());
    this.#loadModels();
    this.tick(() => this.#load());
    this.signal.addEventListener("abort", () => this.#stop.abort());
  }

  show([id = ""], query) {
    const filter = query.get("q") ?? "";
    this.className = id ? "has-item" : "";
    if (filter !== this.#filter) {
      this.#filter = filter;
      this.#load();
    }
    if (id !== this.#id || !this.#pane.childElementCount) this.#open(id);
    this.#showPrompt(Number(query.get("request")));
    this.#mark();
  }

  move(by) { this.#id && !this.#list.contains(document.activeElement) ? moveFocus(this.#turns, ".turn", by) : moveFocus(this.#list, "a.chat", by); }

  key(key) {
    if (key === "G" && this.#id) this.#pane.scrollTop = this.#pane.scrollHeight;
    else if (key === "n" && !session.readOnly) go("chat/new");
    else if (key === "e" && this.#asks.first) this.#asks.first.edit();
    else if (key === "e" && this.#compose.checkVisibility()) this.#text.focus();
    else if (key === "x" && this.#stopButton.checkVisibility()) this.#stopTurn();
    else if (key === "p") /** @type {any} */ (document.activeElement?.querySelector(".to-prompt"))?.click();
    else return false;
    return true;
  }

  async #loadModels() {
    this.#models = await attempt(() => get("/v1/models")) ?? this.#models;
    const { models, default: usual } = this.#models;
    fill(this.#model, usual && models.includes(usual) ? null : el("option", { value: "" }, usual ? oneLine(usual) : "the default model"), models.map((m) => el("option", { value: m, selected: m === usual }, oneLine(m))));
    this.#drawCompose();
  }

  /** Shows where a message is written, if one can be sent. */
  #drawCompose() {
    const isNew = this.#id === "new", here = this.#chat?.here, works = !!here?.isWorking, waits = !!here?.isWaiting, problem = this.#models.problem;
    this.#compose.hidden = session.readOnly || !(isNew || this.#chat && (here || !this.#chat.live)) || !!problem && !here;
    this.#choices.hidden = !isNew;
    this.#kept.textContent = isNew ? "" : modes[here?.mode ?? this.#chat?.mode] ?? modes.ask;
    this.#stopButton.hidden = !works;
    this.#sendButton.hidden = works && !waits;
    this.#note.textContent = oneLine(this.#failed.get(this.#id) ?? here?.problem ?? "");
    if (isNew) fill(this.#head, el("h2", {}, "New conversation"), el("p", { class: "soft" }, session.readOnly ? "This console only reads, so it begins no conversation." : problem ? reveal(problem) : "The model gets the tools of all servers, and runs in dowel: it goes on when this page is closed. Its questions appear here and in Asks."));
    if (works && !moment() && this.#drafting !== this.#id) this.#follow(this.#id);
  }

  /** Shows the reply that the model writes now. */
  async #follow(id) {
    this.#drafting = id;
    const draw = ({ draft: text, notice, isWaiting }) => {
      const pane = this.#pane, atEnd = pane.scrollTop + pane.clientHeight >= pane.scrollHeight - 60;
      fill(this.#draft, el("p", { class: "soft" }, peg("◐", "wait"), isWaiting ? " A task goes on. You can write: the next answer waits for it again" : " The model works"), notice ? el("p", { class: "soft" }, reveal(notice)) : null, text ? prose(text) : null);
      if (atEnd) pane.scrollTop = pane.scrollHeight;
    };
    this.#draft.hidden = false;
    draw({ draft: "" });
    try { await lines(chatPath(id, "/draft"), { signal: this.#stop.signal }, (batch) => draw(batch.at(-1))); } catch { /* the conversation tells */ }
    if (this.#drafting !== id) return;
    this.#drafting = "";
    this.#draft.hidden = true;
  }

  async #loadAsks() {
    const id = this.#id, all = id && id !== "new" ? await attempt(() => get("/v1/asks")) : null;
    if (id === this.#id) this.#asks.update((all?.asks ?? []).filter((a) => (a.chat ?? a.approval?.session) === id));
  }

  async #send() {
    const text = this.#text.value.trim(), id = this.#id, isNew = id === "new";
    if (!text || this.#sendButton.hidden || this.#sendButton.disabled) return;
    this.#sendButton.disabled = true;
    try {
      const answer = await post(isNew ? "/v1/chats" : chatPath(id, "/messages"), isNew ? { text, model: this.#model.value, mode: this.#mode.value } : { text });
      this.#failed.delete(id);
      if (this.#textOf(id).trim() === text) this.#keepText(id, "");
      if (isNew && this.#id === "new") go("chat/" + encodeURIComponent(answer.id));
    } catch (e) {
      this.#failed.set(id, reasonOf(e));
    }
    this.#sendButton.disabled = false;
    this.#drawCompose();
  }

  #textOf(id) { return id === this.#id ? this.#text.value : this.#typed.get(id) ?? ""; }

  #keepText(id, text) {
    if (id === this.#id) this.#text.value = text;
    else this.#typed.set(id, text);
  }

  #stopTurn() { attempt(() => post(chatPath(this.#id, "/stop"))); }

  async #load() {
    const filter = this.#filter, all = await attempt(() => get("/v1/chats?q=" + encodeURIComponent(filter)));
    if (!all || filter !== this.#filter) return;
    all.chats = all.chats.filter((c) => isShownAt(c.began));
    redraw(this.#list, session.readOnly ? null : el("a", { class: "begin", href: link("chat/new"), data: { key: "new" } }, "+ New conversation"), all.chats.map((c) => el("a", { class: "chat", href: link("chat/" + encodeURIComponent(c.id), { q: filter }), data: { key: c.id } },
      el("span", { class: "words" }, c.live ? [peg("◐", "wait"), " ", el("span", { class: "sr" }, "live: ")] : null, oneLine(c.words || "no words")), el("span", { class: "soft" }, `${c.here?.isWorking ? "the model works" : c.here ? "open here" : c.live ? "live" : age(c.changed) + " ago"} · ${oneLine(c.model || "no model")}`))),
      all.chats.length ? null : el("div", { class: "empty" }, filter ? el("p", {}, "No conversation has these words.") : [el("p", {}, "No conversation is saved. They appear here as soon as you talk with a model", session.readOnly ? ":" : ", here or in a terminal:"), el("p", {}, command("dowel chat"))]),
      all.isCut ? el("p", { class: "soft more" }, "Older ones: dowel chat --sessions") : null);
    this.#mark();
  }

  #mark() {
    for (const a of this.#list.querySelectorAll("a")) {
      if (a.dataset.key === this.#id) a.setAttribute("aria-current", "true");
      else a.removeAttribute("aria-current");
    }
  }

  async #open(id) {
    this.#stop.abort();
    const stop = this.#stop = new AbortController();
    this.#typed.set(this.#id, this.#text.value);
    this.#id = id;
    this.#text.value = this.#typed.get(id) ?? "";
    this.#chat = null;
    this.#nodes = [];
    fill(this.#turns);
    fill(this.#head);
    this.#draft.hidden = true;
    this.#drafting = "";
    this.#asks.update([]);
    fill(this.#pane, id ? [el("a", { class: "back", href: link("chat") }, "← All conversations"), this.#head, this.#turns, this.#draft, this.#asks.node, this.#compose] : el("div", { class: "empty" }, el("p", {}, "Choose a conversation. You see its steps, the calls with their results, and exactly what the model got with each request."), el("p", { class: "soft" }, "The same on the command line: ", el("code", {}, "dowel chat --trace"))));
    this.#drawCompose();
    if (id === "new") return this.#text.focus();
    this.#loadAsks();
    for (let seen = ""; id && !stop.signal.aborted;) {
      try {
        const chat = await get(chatPath(id, "?seen=" + seen), { signal: stop.signal });
        if (stop.signal.aborted) return;
        seen = chat.seen;
        chat.entries = chat.entries.filter((e) => isShownAt(e.at));
        this.#draw(chat);
      } catch (e) {
        if (stop.signal.aborted) return;
        if (!seen) return fill(this.#head, el("p", { class: "bad" }, reveal(reasonOf(e))));
        await new Promise((resolve) => setTimeout(resolve, 2000)); // dowel restarts
      }
    }
  }

  #draw(chat) {
    const pane = this.#pane, atEnd = this.#chat && pane.scrollTop + pane.clientHeight >= pane.scrollHeight - 40, first = chat.entries.find((e) => e.kind === "user");
    this.#chat = chat;
    redraw(this.#head, el("h2", {}, oneLine((first?.text ?? chat.id).slice(0, 200))), el("p", { class: "soft" }, chat.live && !chat.here ? [peg("◐", "wait"), ` live in ${oneLine(chat.live.program)}, process ${chat.live.pid} · `] : null,
      [chat.model, chat.folder, when(chat.began)].filter(Boolean).map(oneLine).join(" · ")), chat.live ? null : el("p", { class: "resume" }, "Continue it: ", command(`dowel chat --resume=${chat.id}`)),
      chat.damaged ? el("p", { class: "bad" }, plural(chat.damaged, "line"), " of its file cannot be read.") : null, chat.first ? el("p", { class: "soft" }, `The first ${plural(chat.first, "part")} are left out: dowel chat --trace=${chat.id} shows all.`) : null);
    const now = new Set();
    chat.entries.forEach((e, i) => {
      const text = JSON.stringify(e), known = this.#nodes[i];
      if (known?.text !== text) {
        const node = this.#turn(e, chat.first + i || i), isFocused = known?.node === document.activeElement;
        if (known) known.node.replaceWith(node);
        else this.#turns.append(node);
        this.#nodes[i] = { text, node };
        if (isFocused) node.focus();
      }
      now.add(this.#nodes[i].node);
    });
    for (const { node } of this.#nodes.splice(chat.entries.length)) node.remove();
    this.#drawCompose();
    if (atEnd || !this.#turns.dataset.id && chat.here) pane.scrollTop = pane.scrollHeight;
    this.#turns.dataset.id = chat.id;
  }

  #turn(e, number) {
    const isReply = e.kind === "reply", names = { user: "You", reply: `Model · step ${e.step}`, compacted: "Older messages were replaced by a summary", model: `The model is ${oneLine(e.text)}`, request: "Request without a reply in the conversation" };
    const about = [shortClock(e.at), isReply && e.ms ? took(e.ms) : "", e.usage ? `${e.usage.input.toLocaleString("en")} tokens in, ${e.usage.output.toLocaleString("en")} out` : "", e.isCut ? "cut off at its limit" : ""].filter(Boolean).join(" · ");
    const body = el("div", {});
    const drawText = (text) => fill(body, isReply ? prose(text) : el("p", { class: "ask-text" }, reveal(text)));
    if (e.text && e.kind !== "model") drawText(e.text);
    return el("li", { class: "turn " + e.kind, tabindex: -1, "aria-label": names[e.kind] ?? e.kind }, el("div", { class: "turn-head" }, el("strong", {}, names[e.kind] ?? e.kind), el("span", { class: "soft number" }, about),
      e.prompt ? el("a", { class: "to-prompt", href: link("chat/" + encodeURIComponent(this.#id), { q: this.#filter, request: e.prompt }) }, `request ${e.prompt}`) : null), body,
      e.size ? el("button", { class: "quiet", click: (event) => { event.target.remove(); this.#whole(number, (all) => drawText(all.text.slice(0, 1_000_000))); } }, "… all of it") : null,
      (e.calls ?? []).map((c, i) => this.#call(c, number, i)));
  }

  #call(c, number, index) {
    const [glyph, kind, word] = callPegs[c.status] ?? ["·", "soft", c.status], d = c.decision;
    const decision = d ? `${d.allowed ? "allowed" : "refused"} by ${oneLine(d.by === "user" ? "you" : d.by)}${d.at ? " in " + oneLine(d.at) : ""}` : "";
    return later("call", [peg(glyph, kind), " ", el("code", {}, oneLine(c.name.replace("__", "."))), el("span", { class: "soft" }, ` ${[word, c.ms ? took(c.ms) : "", decision].filter(Boolean).join(" · ")}`)], () => {
      const result = el("pre", { class: "text", tabindex: 0, "aria-label": "Result" }, reveal(c.result ?? ""));
      return [d && !d.allowed && d.reason ? el("p", { class: "soft" }, reveal(d.reason)) : null, el("h3", {}, "Arguments"), this.#arguments(c.arguments), c.result ? [el("h3", {}, "Result"), result] : null,
        c.size ? el("button", { class: "quiet", click: (event) => { event.target.remove(); this.#whole(number, (all) => { result.textContent = reveal(all.calls[index].result.slice(0, 1_000_000)); }); } }, "… all of it") : null].flat().filter(Boolean);
    });
  }

  #arguments(text) {
    try { return tree(parseTree(text)); } catch { return el("pre", { class: "text", tabindex: 0 }, reveal(text)); }
  }

  async #whole(number, show) {
    const all = await attempt(() => get(chatPath(this.#id, "/entries/" + number)));
    if (all) show(all);
  }

  async #showPrompt(number) {
    const key = `request ${this.#id} ${number}`;
    if (!number || isShown(key)) return;
    const text = await attempt(() => getText(chatPath(this.#id, "/prompts/" + number)));
    if (!text || this.signal.aborted) return;
    const p = parse(text), plain = JSON.parse(text), tokens = (n) => el("span", { class: "soft number" }, ` ~${plural(n, "token")}`);
    const pre = (t) => el("pre", { class: "text", tabindex: 0 }, reveal(t));
    inspect(key, `Request ${number}`, el("div", { class: "part prompt" }, el("p", { class: "soft" }, "Exactly what the model got. Tokens are estimates."), facts([["Sent", when(plain.at) + clock(plain.at).slice(5)], ["In all", tokens(plain.tokens.system + plain.tokens.tools + plain.tokens.messages)], ["Tool choice", plain.toolChoice], ["Limit", plain.maxTokens ? tokens(plain.maxTokens) : ""]]),
      later("", ["Instructions", tokens(plain.tokens.system)], () => pre(plain.system)),
      later("", [plural(plain.tools.length, "tool"), tokens(plain.tokens.tools)], () => p.tools.map((t, i) => later("inner", [el("code", {}, oneLine(t.name)), tokens(plain.tokens.perTool[i])], () => [pre(plain.tools[i].description ?? ""), tree(t.inputSchema)]))),
      el("h3", {}, plural(plain.messages.length, "message"), tokens(plain.tokens.messages)),
      plain.messages.map((m, i) => later("inner", [el("strong", {}, m.role), " ", oneLine(m.content.map((c) => c.text ?? c.name ?? c.type).join(" ")).slice(0, 60), tokens(plain.tokens.perMessage[i])], () => m.content.map((c, j) => (c.type === "text" ? pre(c.text) : tree(p.messages[i].content[j])))))),
    () => set({ request: undefined }, true));
  }
}

customElements.define("dowel-chat", ChatScreen);
