// @ts-check
// Results of calls: content of each type, structured content with its verdict, and the JSON.
import { ask, copy, el, later, oneLine, reasonOf, reveal, webAddress } from "./dom.js";
import { size } from "./format.js";
import { parse, tree } from "./json.js";

const maxShown = 20_000, maxBlocks = 200;
// Pictures that are only pixels. SVG is a document, so it is shown as text.
const pictures = /^image\/(png|jpeg|gif|webp|avif|bmp)$/i, sounds = /^audio\/[\w.+-]+$/i;

let urls = [];

/** Frees the pictures of the results before. */
export function forget() {
  urls.forEach((u) => URL.revokeObjectURL(u));
  urls = [];
}

function decode(base64) {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return null;
  }
}

function blobURL(bytes, type) {
  const url = URL.createObjectURL(new Blob([bytes], { type }));
  urls.push(url);
  return url;
}

/** Text of which the beginning is shown first. */
export function longText(text) {
  const pre = el("pre", { class: "text", tabindex: 0 }, reveal(text.slice(0, maxShown)));
  if (text.length <= maxShown) return pre;
  const all = el("button", { click: () => { pre.textContent = reveal(text); all.remove(); } }, `Show all ${size(text.length)}`);
  return el("div", {}, pre, all, " ", el("button", { class: "quiet", click: () => copy(text) }, "Copy"));
}

/** Bytes as a hex dump. */
function hex(bytes) {
  const rows = [];
  for (let i = 0; i < Math.min(bytes.length, 4096); i += 16) {
    const part = [...bytes.slice(i, i + 16)];
    rows.push(`${i.toString(16).padStart(6, "0")}  ${part.map((b) => b.toString(16).padStart(2, "0")).join(" ").padEnd(47)}  ${part.map((b) => (b > 31 && b < 127 ? String.fromCharCode(b) : ".")).join("")}`);
  }
  return el("details", {}, el("summary", {}, `Bytes, ${size(bytes.length)}${bytes.length > 4096 ? ", the first 4 KB" : ""}`), el("pre", { class: "text hex", tabindex: 0 }, rows.join("\n")));
}

/** Data of a type. */
function binary(base64, type, label) {
  const bytes = decode(base64 ?? "");
  if (!bytes) return el("p", { class: "bad" }, "The data are not base64.");
  const shown = pictures.test(type) ? el("img", { src: blobURL(bytes, type), alt: label }) : sounds.test(type) ? el("audio", { controls: true, src: blobURL(bytes, type), "aria-label": label }) : null;
  return el("div", { class: "binary" }, shown, hex(bytes));
}

/** An address that opens after a question; other schemes are only text. */
function address(uri) {
  if (!/^https?:\/\//i.test(uri)) return el("code", {}, reveal(uri));
  return el("button", { class: "quiet linkish", click: async () => {
    const answer = await ask("Open this address?", webAddress(uri), [{ value: "", text: "Cancel", kind: "quiet" }, { value: "open", text: "Open it", kind: "strong" }]);
    if (answer === "open") window.open(uri, "_blank", "noopener,noreferrer");
  } }, reveal(uri));
}

/** @param {any} r contents of a resource @param {((uri: string) => any)} read */
function resource(r, read) {
  return el("div", {}, el("p", { class: "block-head" }, read(String(r.uri ?? "")), r.mimeType ? el("span", { class: "soft" }, ` ${oneLine(r.mimeType)}`) : null),
    typeof r.blob === "string" ? binary(r.blob, String(r.mimeType ?? ""), String(r.uri)) : longText(String(r.text ?? "")));
}

function content(block, read) {
  const type = String(block?.type);
  const head = (text) => el("p", { class: "block-head soft" }, text);
  const notes = block?.annotations ? el("p", { class: "soft" }, oneLine(Object.entries(block.annotations).map(([k, v]) => `${k} ${v}`).join(", "))) : null;
  if (type === "text") return [longText(String(block.text ?? "")), notes];
  if (type === "image" || type === "audio") return [head(`${type} ${oneLine(block.mimeType ?? "")}`), binary(String(block.data ?? ""), String(block.mimeType ?? ""), `${type} of the result`), notes];
  if (type === "resource_link") return [head(`link ${oneLine(block.title || block.name || "")} ${oneLine(block.mimeType ?? "")}`), el("p", {}, read(String(block.uri ?? ""))), block.description ? el("p", {}, reveal(String(block.description).slice(0, 2000))) : null, notes];
  if (type === "resource") return [resource(block.resource ?? {}, read), notes];
  return [head(oneLine(type)), tree(block)];
}

function verdictLine(verdict) {
  if (!verdict) return null;
  if (verdict.ok) return el("p", { class: "verdict ok" }, "✓ matches the output schema");
  if (verdict.error) return el("p", { class: "verdict ask" }, "! not checked: ", oneLine(verdict.error));
  return el("div", { class: "verdict bad" }, "✗ does not match the output schema", el("ul", {}, verdict.issues.map((i) => el("li", {}, el("code", {}, reveal(i.path || "/")), " ", reveal(i.message)))));
}

/**
 * Shows the result of a call.
 * @param {any} e the event with the result @param {(uri: string) => any} link shows a URI that may be a resource
 */
export function drawResult(e, link) {
  let result;
  try {
    result = parse(e.result);
  } catch (err) {
    return el("div", {}, el("p", { class: "bad" }, `The result is not shown as a tree: ${oneLine(reasonOf(err))}`), longText(e.result));
  }
  const read = (uri) => link(uri) ?? address(uri);
  const blocks = Array.isArray(result.content) ? result.content : [], messages = Array.isArray(result.messages) ? result.messages : [], contents = Array.isArray(result.contents) ? result.contents : [];
  return el("div", { class: "result" },
    result.description ? el("p", {}, reveal(String(result.description))) : null,
    blocks.slice(0, maxBlocks).map((b) => el("div", { class: "block" }, content(b, read))),
    messages.slice(0, maxBlocks).map((m) => el("div", { class: "block" }, el("p", { class: "block-head" }, oneLine(m.role ?? "")), content(m.content, read))),
    contents.slice(0, maxBlocks).map((r) => el("div", { class: "block" }, resource(r, read))),
    blocks.length + messages.length + contents.length === 0 ? el("p", { class: "soft" }, "The result has no content.") : null,
    e.verdict || result.structuredContent !== undefined ? el("div", { class: "block" }, el("h3", {}, "Structured content"), verdictLine(e.verdict), result.structuredContent === undefined ? null : tree(result.structuredContent)) : null,
    later("", `JSON of the result, ${size(e.result.length)}`, () => el("div", {}, el("button", { class: "quiet", click: () => copy(e.result) }, "Copy"), tree(result))));
}
