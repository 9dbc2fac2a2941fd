// @ts-check
import { nowShown } from "./api.js";

const two = (n) => String(n).padStart(2, "0");

/** The time of day, with milliseconds. */
export function clock(t) {
  const d = new Date(t);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${String(d.getMilliseconds()).padStart(3, "0")}`;
}

/** The time of day. */
export const shortClock = (t) => clock(t).slice(0, 8);

/** A duration in at most 6 characters. */
export function took(ms) {
  if (ms === undefined || ms === null) return "";
  if (ms < 1) return `${Math.round(ms * 1000)}µs`;
  if (ms < 9.95) return `${ms.toFixed(1)}ms`;
  if (ms < 1000) return `${Math.round(ms)}ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)}s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)}m${two(Math.floor(ms / 1000) % 60)}`;
  return `${Math.floor(ms / 3_600_000)}h${two(Math.floor(ms / 60_000) % 60)}`;
}

/** A size in at most 6 characters. */
export function size(bytes) {
  if (!bytes) return "0 B";
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 10_000) return `${(bytes / 1024).toFixed(1)} KB`;
  if (bytes < 1_000_000) return `${Math.round(bytes / 1024)} KB`;
  return `${(bytes / 1048576).toFixed(bytes < 10_000_000 ? 1 : 0)} MB`;
}

/** How long ago, in words. */
export function age(t, now = nowShown()) {
  const s = Math.max(0, Math.round((now - new Date(t).getTime()) / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 172_800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86_400)} days`;
}

export const plural = (n, one) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;

/** Cuts or pads text to n characters. */
export function pad(text, n) {
  return text.length > n ? text.slice(0, Math.max(0, n - 1)) + "…" : text.padEnd(n);
}

export function padLeft(text, n) {
  return text.length > n ? text.slice(0, Math.max(0, n - 1)) + "…" : text.padStart(n);
}

/** The glyph, class and word of each status of an operation. @type {Record<string, [string, string, string]>} */
export const pegs = {
  ok: ["●", "ok", "done"], pending: ["◐", "wait", "waits for the server"], asked: ["◆", "ask", "waits for an answer"],
  "tool-error": ["○", "bad", "the tool failed"], error: ["○", "bad", "failed"], refused: ["○", "bad", "refused by dowel"],
  cancelled: ["◌", "soft", "cancelled"], late: ["◌", "soft", "came too late"], lost: ["◌", "soft", "lost"],
};

export const pegOf = (status) => pegs[status] ?? ["·", "soft", status];

/** The glyph and class of each state of a server. @type {Record<string, [string, string]>} */
export const states = {
  ready: ["●", "ok"], starting: ["◐", "wait"], failed: ["○", "bad"], stopped: ["◌", "soft"], disabled: ["·", "soft"],
  "needs configuration": ["▲", "ask"], "needs trust": ["▲", "ask"], "needs authorization": ["◆", "ask"], "needs login": ["◆", "ask"], removed: ["·", "soft"],
};
