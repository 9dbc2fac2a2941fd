// @ts-check
// Time travel: the whole console as of a moment, which is in the address.
import { get, moment } from "./api.js";
import { at, attempt, el, fill, toast } from "./dom.js";
import { clock } from "./format.js";
import { travel } from "./route.js";

/** A button that shows every screen as of a time. */
export const momentButton = (time) => el("button", { class: "quiet", title: "Show every screen as it was then", click: () => travel(new Date(time).toISOString()) }, "All screens as of then");

/** Goes to the change before or after the moment, unless the user has left the moment meanwhile. */
const step = (isLater) => attempt(async () => {
  const from = moment(), now = Date.parse(from), { times } = await get("/v1/moments");
  if (moment() !== from) return;
  const to = isLater ? times.find((t) => Date.parse(t) > now) : times.findLast((t) => Date.parse(t) < now);
  if (to) travel(to);
  else toast(isLater ? "Nothing has changed since" : "dowel keeps nothing older", true);
});

/** Draws the bar that names the moment. */
export function drawMoment() {
  const bar = at("moment"), time = moment(), date = new Date(time);
  bar.hidden = !time;
  fill(bar, time ? [el("span", {}, "As of ", el("strong", { class: "mono" }, isNaN(+date) ? "?" : `${date.toLocaleDateString("sv")} ${clock(date)}`), el("span", { class: "soft" }, " · nothing can be changed here")), el("span", { class: "buttons" },
    el("button", { class: "quiet", title: "The change before", click: () => step(false) }, "← earlier"), el("button", { class: "quiet", title: "The change after", click: () => step(true) }, "later →"), el("button", { class: "strong", click: () => travel("") }, "Back to now"))] : null);
}
