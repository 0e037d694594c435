// @ts-check
// What a view shows while it has no data, and how far a study is.

import { serverNow } from "./api.js";
import { command, h, quote, state } from "./dom.js";

const patience = 20_000; // milliseconds without a worker after which a study waits for one

/** waits tells whether a study could go on and no worker has a trial of it. */
export function waits(/** @type {any} */ s) {
  return s.state === "STUDY_STATE_ACTIVE" && !Number(s.running ?? 0) && serverNow() - Date.parse(s.lastToldTime ?? s.createTime) > patience;
}

/** left is the seconds until the first limit, or NaN. Without a worker no one knows. */
export function left(/** @type {any} */ s) {
  if (s.state !== "STUDY_STATE_ACTIVE" || waits(s)) return NaN;
  const ends = [];
  const age = (serverNow() - Date.parse(s.createTime)) / 1000;
  const rate = Number(s.toldLastHour ?? 0) / Math.max(60, Math.min(3600, age));
  const ended = ["completed", "failed", "infeasible", "pruned"].reduce((n, k) => n + Number(s[k] ?? 0), 0);
  const max = Number(s.spec.maxTrials ?? 0);
  if (max && rate > 0) ends.push((max - (ended - Number(s.added ?? 0))) / rate);
  const timeout = parseFloat(s.spec.timeout ?? "");
  if (timeout) ends.push(timeout - age);
  if (s.spec.maxCost && s.cost && rate > 0) ends.push((s.spec.maxCost - s.cost) / (s.cost / ended) / rate);
  return ends.length ? Math.max(0, Math.min(...ends)) : NaN;
}

/** studyState is the state of a study, also that it waits or has nothing to show. */
export function studyState(/** @type {any} */ s) {
  if (waits(s)) return h("span", { class: "state paused", title: "No worker has a trial" }, h("span", { "aria-hidden": "true" }, "○"), " waiting for workers");
  if (s.state === "STUDY_STATE_FINISHED" && !Number(s.completed ?? 0)) return h("span", { class: "state failed" }, h("span", { "aria-hidden": "true" }, "✕"), " finished without a result");
  return state(s.state);
}

const reasons = /** @type {Record<string, string>} */ ({ MAX_TRIALS: "It has all its trials", TIME: "Its time is over", COST: "Its cost is spent", GAP: "Nothing can be much better", EXHAUSTED: "All configurations were tried", USER: "It was finished by hand", TARGET: "It has reached its target", PATIENCE: "No trial was better for long" });

/** notice says what the state of a study means, and what to do. */
export function notice(/** @type {string} */ name, /** @type {any} */ s) {
  const q = quote(name);
  if (s.state === "STUDY_STATE_PAUSED") return h("p", { class: "notice warn-note" }, "The study is paused, so asks fail until you resume it. ", command(`tuner resume ${q}`));
  if (waits(s)) return h("p", { class: "notice warn-note" }, "No worker has a trial, so nothing goes on. Start one with ", command(`tuner run ${q} -- python train.py {args}`));
  if (s.state !== "STUDY_STATE_FINISHED") return "";
  return h("p", { class: "notice" }, `${reasons[(s.finishReason ?? "").replace("FINISH_REASON_", "")] ?? "It has finished"}${s.finishDetail ? `: ${s.finishDetail}` : ""}. To continue, ${/GAP|EXHAUSTED/.test(s.finishReason) ? "start a new study from it" : "extend it"}. `, command(/GAP|EXHAUSTED/.test(s.finishReason) ? `tuner create-study ${quote(`${name}-2`)} --from ${q}` : `tuner extend ${q}${s.finishReason === "FINISH_REASON_MAX_TRIALS" ? " --trials 20" : ""}`));
}

/** skeleton stands for what loads, and shows after 150 ms. */
export const skeleton = (/** @type {number} */ lines) => h("div", { class: "skeleton", role: "status" }, h("span", { class: "sr" }, "Loading"), Array.from({ length: lines }, () => h("div", { "aria-hidden": "true" })));

/** failure says what went wrong and offers another try. */
export function failure(/** @type {any} */ e, /** @type {() => void} */ again, hint = "") {
  const title = /** @type {Record<number, string>} */ ({ 0: "The server cannot be reached", 401: "You are not logged in", 403: "Your token does not permit this", 404: "It does not exist" })[e.status] ?? "This did not work";
  return h("section", { class: "card failure", role: "alert" }, h("h2", {}, title), h("p", {}, e.message), e.reason && h("p", { class: "muted" }, `Code ${e.reason}`),
    e.status === 403 && hint && h("p", {}, hint), h("button", { type: "button", onclick: again }, "Try again"));
}
