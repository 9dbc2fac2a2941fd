// @ts-check
// Import: the servers of the user's other tools, to be added to dowel's own file.
import { get, post } from "./api.js";
import { ask, attempt, el, oneLine, reveal, toast } from "./dom.js";
import { plural } from "./format.js";

const keyOf = (s) => JSON.stringify([s.path, s.name]);

/** A server, with a box if it can be added. */
function row(s, chosen) {
  const box = s.why ? null : el("input", { type: "checkbox", checked: chosen.has(keyOf(s)), change: (e) => {
    if (e.currentTarget.checked) chosen.set(keyOf(s), s);
    else chosen.delete(keyOf(s));
  } });
  return el("li", {}, el("label", { class: "check" }, box ?? el("span", { class: "peg soft", "aria-hidden": "true" }, "–"), el("strong", {}, oneLine(s.name)), s.notes?.map((n) => el("span", { class: "note" }, oneLine(n)))),
    s.why ? el("p", { class: "soft" }, oneLine(s.why)) : el("details", {}, el("summary", { class: "mono" }, oneLine(s.target)), el("ul", { class: "mono factlist" }, s.facts.map((f) => el("li", {}, reveal(f))))));
}

/** Shows the servers of other tools, and adds those that the user chooses. */
export const importServers = () => attempt(async () => {
  const { file, servers, problems } = await get("/v1/imports");
  const chosen = new Map(servers.filter((s) => !s.why).map((s) => [keyOf(s), s]));
  const trust = el("input", { type: "checkbox" });
  const body = el("div", { class: "imports" }, problems?.map((p) => el("p", { class: "reason" }, reveal(p))),
    servers.length ? el("p", { class: "soft" }, "They are copied to ", el("code", {}, oneLine(file)), ". The files of the other tools stay as they are.") : el("p", {}, "dowel found no servers of other tools."),
    [...Map.groupBy(servers, (s) => s.path)].map(([path, all]) => el("section", {}, el("h3", {}, oneLine(all[0].tool), el("span", { class: "soft where" }, oneLine(path))), el("ul", {}, all.map((s) => row(s, chosen))))),
    chosen.size ? el("label", { class: "check" }, trust, "Let tools run without asking if their server declares them read-only") : null);
  const cancel = { value: "", text: chosen.size ? "Cancel" : "Close", kind: "quiet" };
  if (await ask("Import from your other tools", body, chosen.size ? [cancel, { value: "add", text: "Add the chosen servers", kind: "strong" }] : [cancel]) !== "add" || !chosen.size) return;
  const added = await post("/v1/imports", { servers: [...chosen.values()].map(({ path, name, seen }) => ({ path, name, seen })), trustAnnotations: trust.checked });
  toast(added.warning ?? `Added ${plural(added.added.length, "server")} to ${added.file}`, !!added.warning);
});
