// @ts-check
// The shell: screens, keys, the filter, and the state of the connection.
import { isEmbedded, logIn, moment, prefix, session, post } from "./api.js";
import { ask, at, attempt, command, el, fill, peg, reasonOf } from "./dom.js";
import { AsksScreen } from "./asks.js";
import { AuditScreen } from "./audit.js";
import { ChatScreen } from "./chat.js";
import { ConfigScreen } from "./config.js";
import { age, shortClock } from "./format.js";
import { close, dismiss } from "./inspector.js";
import { drawMoment } from "./moment.js";
import { changes, go, here, set, visit } from "./route.js";
import { ServersScreen } from "./servers.js";
import { store } from "./store.js";
import { ToolsScreen } from "./tools.js";
import { WireScreen } from "./wire.js";

/** @type {Record<string, {title: string, make: () => any, hint: string}>} */
const screens = {
  servers: { title: "Servers", make: () => new ServersScreen(), hint: "Filter servers" },
  tools: { title: "Tools", make: () => new ToolsScreen(), hint: "Search tools, prompts and resources by name, or by what they do" },
  wire: { title: "Wire", make: () => new WireScreen(), hint: "Filter, such as server:github status:error" },
  asks: { title: "Asks", make: () => new AsksScreen(), hint: "Filter questions" },
  chat: { title: "Chat", make: () => new ChatScreen(), hint: "Words of a conversation, its model or its folder" },
  config: { title: "Config", make: () => new ConfigScreen(), hint: "Words of an entry, such as a server, a file, a field or a variable" },
  audit: { title: "Audit", make: () => new AuditScreen(), hint: "Words that a record has, such as a server, a client or an outcome" },
};

for (const name of (document.body.dataset.hidden ?? "").split(" ").filter((name) => screens[name])) {
  delete screens[name];
  at("rail").querySelector(`[data-screen=${name}]`)?.remove();
}

const main = at("main"), query = at("query"), live = at("live");
let screen = null;
let shown = "";
let shownMoment = "";
let isReady = false; // the login is over

/** Shows what the address names. */
function show() {
  if (!isReady || store.connection === "out") return;
  const { screen: name, path, query: q } = here();
  if (!screens[name]) {
    go("servers", {}, true);
    return;
  }
  if (moment() !== shownMoment) { // every screen is drawn anew
    shownMoment = moment();
    shown = "";
    drawMoment();
    attempt(() => store.travel());
  }
  if (name !== shown) {
    dismiss();
    shown = name;
    screen = screens[name].make();
    fill(main, screen);
  } else if (!path.length && !q.get("sel")) dismiss();
  if (document.activeElement !== query) query.value = q.get("q") ?? "";
  query.placeholder = screens[name].hint;
  document.title = `${path[0] ? path[0] + " · " : ""}${screens[name].title} · dowel`;
  for (const a of at("rail").querySelectorAll("a")) {
    if (a.dataset.screen === name) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  screen.show(path, q);
}

changes.addEventListener("change", show);

// Links within the console change the screen and keep the page.
document.addEventListener("click", (e) => {
  const a = e.target.closest?.("a");
  if (!a || e.defaultPrevented || e.button !== 0 || e.ctrlKey || e.metaKey || e.shiftKey || a.origin !== location.origin || !a.pathname.startsWith(prefix + "/") || a.hash) return;
  e.preventDefault();
  visit(a.pathname + a.search);
});

let filterTimer = 0;
at("filter").addEventListener("submit", (e) => {
  e.preventDefault();
  applyFilter();
});
query.addEventListener("input", () => {
  clearTimeout(filterTimer);
  filterTimer = setTimeout(applyFilter, 250);
});

function applyFilter() {
  clearTimeout(filterTimer);
  set({ q: query.value.trim() || undefined, sel: undefined }, true);
}

// The live pill, the counts of the rail, and errors of the filter.
function drawTop() {
  const words = { live: moment() ? "the past" : store.paused ? "paused" : "live", waiting: "waiting for dowel", hidden: "asleep", out: "logged out" };
  const kind = store.connection === "live" && !store.paused && !moment() ? "ok" : store.connection === "out" ? "bad" : "wait";
  fill(live, peg(kind === "ok" ? "●" : "◌", kind), " ", words[/** @type {keyof words} */ (store.connection)],
    store.connection === "live" && store.rate && !moment() ? el("span", { class: "soft" }, ` ${store.rate}/s`) : null, session.readOnly && !moment() && store.connection !== "out" ? el("span", { class: "soft" }, " · read only") : null);
  live.title = store.reason || (store.status ? `dowel ${store.status.version}, process ${store.status.pid}, running for ${age(store.status.started)}` : "");
  const error = shown === "wire" ? store.filterError : "";
  at("filter-error").textContent = error;
  query.setAttribute("aria-invalid", String(error !== ""));
  document.body.classList.toggle("lost", store.connection === "waiting" && store.status !== null);
}

function drawRail() {
  const servers = store.status?.servers ?? [];
  const failing = servers.filter((s) => !["ready", "starting", "stopped", "disabled", "removed"].includes(s.status)).length;
  const count = (name) => at("rail").querySelector(`[data-screen=${name}] b`);
  fill(count("tools"), servers.reduce((n, s) => n + s.tools, 0) || "");
  fill(count("servers"), el("span", { class: "total" }, servers.length || ""), failing ? el("span", { class: "bad" }, ` ○${failing}`) : null);
  fill(count("asks"), store.asks ? el("span", { class: "ask" }, `◆${store.asks}`) : "");
}

function onConnection() {
  drawTop();
  if (store.connection === "out") showLogin();
}

function showLogin(reason = store.reason) {
  dismiss();
  shown = "";
  document.body.classList.add("logged-out");
  fill(main, el("section", { class: "login" }, el("h1", {}, "Not logged in"), el("p", {}, reason || "This page has no key to the running dowel."),
    isEmbedded ? el("p", {}, "Open it with a link of the program that it belongs to.") : [el("p", {}, "Open the console from a terminal of the same user:"), el("p", {}, command("dowel console"))],
    el("p", { class: "soft" }, document.body.dataset.login === "own" ? "" : `A page stays logged in until dowel ends, or for 12 hours without use. It was ${shortClock(Date.now())} when this was noticed.`)));
}

const keyHelp = [["g s", "Servers"], ["g t", "Tools"], ["g w", "Wire"], ["g a", "Asks"], ["g h", "Chat"], ["g c", "Config"], ["g u", "Audit"], ["/", "filter"], ["j  k", "next, previous"], ["Enter", "open"], ["→ ←", "unfold, fold an operation"], ["Esc", "close, back"],
  ["e  r", "edit arguments, an answer or a message; run"], ["n  x", "new conversation, stop the model"], ["Ctrl Enter", "run or answer from a field"], ["f", "operations or messages"], ["Space", "pause and go on"], ["G", "newest, and follow"], ["y", "copy"], ["m  c", "mark an operation, compare with it"], ["?", "this"]];

const filterHelp = [["server:github client:cursor", "who"], ["method:tools/call tool:create_*", "what; * and ? stand for any characters"], ["status:error|tool-error", "ok error tool-error pending asked cancelled late refused lost"],
  ["kind:stray leg:server dir:in", "of messages"], ["dur:>500ms size:>10k since:10m", "how long, how large, when"], ["args.path:/etc* result.isError:true", "a value in a message"],
  ['"some text" body:/re/', "a text in a message"], ["-kind:note (a or b)", "not; alternatives"]];

function help() {
  const rows = (all) => el("dl", { class: "facts keys" }, all.map(([key, text]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)]));
  const theme = document.documentElement.dataset.theme ?? "auto";
  ask("Keys and filter", el("div", {}, rows(keyHelp), el("h3", {}, "Filter of Wire, as of dowel wire"), el("dl", { class: "facts keys wide" }, filterHelp.map(([key, text]) => [el("dt", {}, el("code", {}, key)), el("dd", {}, text)])),
    el("h3", {}, "Colours"), el("div", { class: "choice", role: "group", "aria-label": "Colours" }, ["auto", "light", "dark"].map((name) => el("button", { "aria-pressed": String(name === theme), click: (e) => {
      setTheme(name);
      const group = e.currentTarget.parentElement;
      for (const b of group?.children ?? []) b.setAttribute("aria-pressed", String(b === e.currentTarget));
    } }, name)))), [{ value: "logout", text: "Log out", kind: "quiet" }, { value: "", text: "Close" }]).then(async (answer) => {
    if (answer !== "logout") return;
    try { await post("/logout"); } catch { /* it has ended already */ }
    session.forget();
    location.reload();
  });
}

at("help-button").addEventListener("click", help);

function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  localStorage.setItem("dowel.theme", name);
}
setTheme(localStorage.getItem("dowel.theme") ?? "auto");

let prefixKey = "";
document.addEventListener("keydown", (e) => {
  const target = e.target;
  if (e.key === "Escape") {
    if (at("dialog").open) return;
    if (target === query) {
      query.blur();
      main.focus();
    } else if (target.closest("dowel-tools, dowel-asks, dowel-chat") && target.matches("input, textarea, select")) target.blur();
    else close();
    return;
  }
  if (e.ctrlKey || e.metaKey || e.altKey || at("dialog").open || target.closest("input, textarea, select")) return;
  const key = prefixKey + e.key;
  prefixKey = "";
  /** @type {Record<string, () => void>} */
  const keys = { "/": () => query.select(), "?": help, gs: () => go("servers"), gt: () => go("tools"), gw: () => go("wire"), ga: () => go("asks"), gh: () => go("chat"), gc: () => go("config"), gu: () => go("audit"), g: () => { prefixKey = "g"; }, j: () => screen?.move(1), k: () => screen?.move(-1) };
  if (keys[key]) {
    e.preventDefault();
    keys[key]();
  } else if (!(e.key === " " && target.closest("button, a, summary")) && screen?.key?.(e.key)) e.preventDefault();
});

store.addEventListener("connection", onConnection);
store.addEventListener("rate", drawTop);
store.addEventListener("status", () => { drawTop(); drawRail(); });
store.addEventListener("rows", drawTop);
store.addEventListener("asks", drawRail);

// A page of an older dowel has older files.
store.addEventListener("status", () => {
  if (!store.status.version) return;
  if (document.body.dataset.version && document.body.dataset.version !== store.status.version) location.reload();
  document.body.dataset.version = store.status.version;
});

try {
  await logIn();
  if (!session.isOpen) throw new Error("");
  isReady = true;
  const { query: q, screen: name } = here();
  if (name === "wire") {
    store.filter = q.get("q") ?? "";
    store.frames = q.get("rows") === "frames";
  }
  show();
  store.start();
} catch (e) {
  store.connection = "out";
  drawTop();
  showLogin(reasonOf(e));
}

// A login link that is opened in a page which is open already.
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#login=")) location.reload();
});
