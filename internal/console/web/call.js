// @ts-check
// One call as it goes on: its state, progress, log, questions and result.
import { lines } from "./api.js";
import { el, fill, oneLine, peg, reasonOf, reveal } from "./dom.js";
import { clock, pegOf, size, took } from "./format.js";
import { Question } from "./asks.js";
import { parse } from "./json.js";
import { drawResult } from "./result.js";
import { link } from "./route.js";

/**
 * Draws a call in a node until it ends or the signal aborts.
 * @param {number} id @param {HTMLElement} node
 * @param {{ signal: AbortSignal, linkTo: (uri: string) => any, changed: (info: any) => void }} o changed gets each state of the call
 * @returns {Promise<string>} the JSON text of the result, or "" without one
 */
export async function followCall(id, node, o) {
  const head = el("h3", {}, "Result"), live = el("div", { class: "progress", role: "status" }), notes = el("ul", { class: "notes" }), asks = el("div", { class: "asks", "aria-live": "polite" }), body = el("div", {});
  fill(node, head, live, notes, asks, body);
  let info = null, result = "";
  const show = {
    call: (e) => {
      info = e.call;
      if (info.revision) head.textContent = `As a client of ${info.revision}`;
      o.changed(info);
      drawState(live, info, null);
    },
    progress: (e) => drawState(live, info, e),
    log: (e) => notes.append(el("li", {}, el("span", { class: "soft" }, `${took(e.ms)} ${oneLine(e.level)} `), reveal(e.message.slice(0, 2000)))),
    ask: (e) => asks.append(new Question(e.ask).node),
    answer: (e) => { const node = asks.querySelector(`[data-ask="${e.ask.id}"]`); if (node) fill(node, el("p", { class: "soft" }, `◆ answered: ${e.message}`)); },
    result: (e) => { result = e.result; fill(body, drawResult(e, o.linkTo)); node.scrollIntoView({ block: "nearest" }); },
    error: (e) => fill(body, el("p", { class: "reason" }, reveal(e.message))),
  };
  try {
    await lines(`/v1/calls/${id}`, { signal: o.signal }, (batch) => batch.forEach((e) => { if (!o.signal.aborted) show[e.k]?.(e); }));
  } catch (e) {
    if (!o.signal.aborted) fill(body, el("p", { class: "bad" }, oneLine(reasonOf(e))));
  }
  return result;
}

function drawState(node, info, progress) {
  const [glyph, kind, word] = pegOf(info.status);
  fill(node, peg(glyph, kind), ` ${word}`, info.ms ? ` in ${took(info.ms)}, ${size(info.bytes)}` : "",
    el("span", { class: "soft" }, ` · ${clock(info.start)}`), progress ? [el("progress", { max: progress.total || undefined, value: progress.total ? progress.progress : undefined, "aria-label": "Progress" }), ` ${progress.progress ?? 0}${progress.total ? " of " + progress.total : ""} ${oneLine(progress.message ?? "")}`] : null,
    el("a", { class: "to-wire", href: link("wire", { q: `client:console tool:${JSON.stringify(info.name)}` }) }, "messages"));
}

/** The members of results that say something to a model. Others belong to a revision of the protocol. */
const told = ["content", "structuredContent", "isError", "description", "messages", "contents"];

/** Says whether two results tell the same. @param {string[]} results JSON texts, "" for a call without a result */
export function compareResults(results) {
  if (results.some((text) => !text)) return results.some(Boolean) ? "✗ Only one of the calls has a result." : "";
  const [a, b] = results.map((text) => parse(text));
  const differing = told.filter((name) => JSON.stringify(a[name] ?? null) !== JSON.stringify(b[name] ?? null));
  return differing.length ? `✗ The results differ in ${differing.join(", ")}.` : "✓ Both results tell the same.";
}
