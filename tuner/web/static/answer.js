// @ts-check
// The main answer of a study: its best configuration, whether to trust it, and whether it is
// worth going on. Where nothing completed, it says what failed.

import { call } from "./api.js";
import { parameters } from "./columns.js";
import { copy, count, duration, exactly, h, number, quote, trialURL, yaml } from "./dom.js";
import { figure } from "./figure.js";
import { left } from "./states.js";

/** shapes are the forms in which a configuration can be copied. */
const shapes = /** @type {Record<string, (config: [string, any][]) => string>} */ ({
  flags: (config) => config.map(([k, v]) => quote(`--${k}=${v}`)).join(" "),
  YAML: (config) => config.map(([k, v]) => `${yaml(k)}: ${yaml(v)}\n`).join(""),
  Python: (config) => `{\n${config.map(([k, v]) => `    ${JSON.stringify(k)}: ${typeof v === "boolean" ? (v ? "True" : "False") : typeof v === "string" ? JSON.stringify(v) : v},\n`).join("")}}`,
});

/**
 * answer shows the best configuration of a study with one objective.
 * @param {import("./study.js").Study} s
 */
export function answer(s) {
  const body = h("div", { class: "answer" });
  const choice = h("div", { class: "choice", role: "group", "aria-label": "Form of the configuration" });
  let shape = "table";
  let trial = /** @type {import("./study.js").Trial|null} */ (null);

  async function update() {
    const n = s.recommended >= 0 && s.bestThen === s.best() ? s.recommended : s.best();
    trial = n < 0 ? null : await s.trial(n);
    draw();
  }

  function draw() {
    const t = trial;
    if (!t) {
      body.replaceChildren(h("p", { class: "empty" }, "No trial has completed yet. The best configuration appears with the first result."));
      return;
    }
    choice.replaceChildren(...["table", ...Object.keys(shapes)].map((name) => h("button", { type: "button", class: "quiet", "aria-pressed": String(name === shape), onclick: () => {
      shape = name;
      draw();
    } }, name === "table" ? "Table" : name === "flags" ? "Flags" : name)));
    const text = shapes[shape]?.(t.config);
    const [trust, onward] = [trustIn(s, t), worth(s)];
    body.replaceChildren(
      h("div", { class: "result" }, h("div", { class: "muted" }, s.objective().name), h("div", { class: "value" }, number(t.values[0], 6)),
        number(t.values[0], 6) !== exactly(t.values[0]).replace("-", "−") && h("div", { class: "muted exact" }, exactly(t.values[0])),
        h("div", {}, h("a", { href: trialURL(s.name, t.n) }, `trial ${count(t.n)}`), t.worker ? [" by ", h("span", { class: "name" }, t.worker)] : ""), h("div", { class: "muted" }, t.seconds >= 0 ? `took ${duration(t.seconds)}` : "added, not run here"),
        t.others.map(([k, v]) => h("div", { class: "muted" }, `${k} ${number(v)}${s.limits()[k] ? `, ${s.limits()[k]}` : ""}`))),
      h("div", { class: "configuration" }, choice, text === undefined
        ? h("table", { class: "config" }, h("caption", { class: "sr" }, "Best configuration"), h("tbody", {}, t.config.map(([k, v]) => h("tr", {}, h("th", { scope: "row", title: k }, k), h("td", {}, exactly(v))))))
        : h("div", { class: "copied" }, h("pre", { tabindex: "0", role: "region", "aria-label": `Configuration as ${shape}` }, text), copy(text, `Copy the configuration as ${shape}`))),
      h("div", { class: "verdicts" }, verdict("May I trust it?", trust), verdict("Is it worth going on?", onward)));
  }

  const verdict = (/** @type {string} */ title, /** @type {{word: string, text: any[]}} */ v) => h("section", {}, h("h3", {}, title), h("p", {}, h("strong", {}, v.word), v.text.flatMap((t) => [" ", t])));
  const element = figure({
    title: "Best configuration", name: `${s.name}-best`, wide: true, cli: `tuner best ${quote(s.name)}`, body,
    rows: () => (trial ? [["parameter", "value"], ...trial.config, [s.objective().name, trial.values[0]], ["trial", trial.n], ["worker", trial.worker]] : [["parameter", "value"]]),
  });
  return { element, update };
}

/** trustIn says how sure the value of the best trial is. */
function trustIn(/** @type {import("./study.js").Study} */ s, /** @type {import("./study.js").Trial} */ t) {
  const text = [];
  let word = "Not yet.";
  const p = s.believed?.trial === t.n ? s.believed : null;
  const sign = s.maximize() ? -1 : 1;
  if (p) {
    const spread = Math.hypot(p.sd, p.noise);
    const luck = sign * (p.mean - t.values[0]) > 2 * spread;
    word = luck ? "With care." : "Yes.";
    text.push(`The model expects ${number(p.mean, 4)} ± ${number(2 * p.sd, 2)} here (95 %), and single outcomes vary by ± ${number(2 * p.noise, 2)}.`);
    if (luck) text.push("It measured better than that, so part of it is luck.");
    const { covered = 0, predicted = 0 } = s.diagnosis ?? {};
    if (Number(predicted) > 0) text.push(`${count(Number(covered))} of the last ${count(Number(predicted))} outcomes lay in their 95 % intervals.`);
    const best = s.best();
    if (best >= 0 && best !== t.n) text.push(h("a", { href: trialURL(s.name, best) }, `Trial ${count(best)}`), `measured ${number(s.values()[best], 6)}. The model takes the difference for noise.`);
  } else {
    const others = s.ranked().sorted.length;
    text.push(others === 1 ? "It is the only result." : `It is the best of ${count(others)} results${t.times > 1 ? `, a mean of ${t.times} values` : ", measured once"}.`, `There is no prediction: ${s.recommended >= 0 ? "it came after the model was asked" : s.noModel()}.`);
  }
  if (s.breaks(t.n)) {
    word = "No.";
    text.push("It breaks a limit, because no trial keeps all of them.");
  }
  const ends = s.info.attributes?.["autotune.limits"] === undefined ? edges(s, t) : [];
  if (ends.length) text.push(`${ends.join(" and ")}, so the optimum may lie beyond.`);
  return { word, text };
}

/** edges names the ends of ranges at which a trial lies. */
function edges(/** @type {import("./study.js").Study} */ s, /** @type {import("./study.js").Trial} */ t) {
  return parameters(s.table).flatMap((c) => {
    const v = t.config.find(([k]) => k === c.name)?.[1];
    if (v === undefined || !["float", "int"].includes(c.axis.kind) || c.axis.levels === 1) return [];
    const { low, high } = s.range(c.name);
    return Number(v) === low ? [`${c.name} is at its lower end`] : Number(v) === high ? [`${c.name} is at its upper end`] : [];
  });
}

/** worth says whether more trials promise more. */
function worth(/** @type {import("./study.js").Study} */ s) {
  const done = s.ranked().sorted.length;
  const since = s.sinceBest();
  const d = s.diagnosis;
  const gap = d?.gap === undefined ? NaN : Number(d.gap);
  const text = [];
  let word = "Yes.";
  if (s.info.state === "STUDY_STATE_FINISHED") word = "It has finished.";
  else if (Number.isFinite(gap) && gap <= Number(d.noise ?? 0)) word = "Hardly.";
  else if (done >= 20 && since > done / 2) word = "Perhaps not.";
  text.push(since === 0 ? "The last result measured best." : `The best measured one is ${count(since)} ${since === 1 ? "result" : "results"} old, of ${count(done)}.`);
  if (Number.isFinite(gap)) text.push(`By the model nothing is better by more than ${number(gap, 2)}.`);
  const max = Number(s.info.spec.maxTrials ?? 0);
  const more = max - (s.table.n - Number(s.info.added ?? 0));
  const time = left(s.info);
  if (s.info.state !== "STUDY_STATE_FINISHED" && max) text.push(`${count(Math.max(0, more))} trials are left${Number.isFinite(time) ? `, about ${duration(time)}` : ""}.`);
  return { word, text };
}

/**
 * failures groups what failed by its message.
 * @param {import("./study.js").Study} s
 * @param {AbortSignal} signal
 */
export function failures(s, signal) {
  const body = h("div", { class: "failures" });
  let groups = /** @type {{text: string, reason: string, trials: any[]}[]} */ ([]);
  let known = "";

  async function update() {
    const states = ["failed", "infeasible"];
    const at = states.map((k) => s.info[k] ?? 0).join();
    const [all, some] = [s.table.n, Number(s.info.failed ?? 0) + Number(s.info.infeasible ?? 0)];
    element.toggleAttribute("hidden", !some);
    title.textContent = some === all ? `All ${count(all)} trials failed` : `What failed: ${count(some)} of ${count(all)} trials`;
    if (!some || at === known) return;
    const page = await call("ListTrials", { parent: `studies/${s.name}`, states: ["TRIAL_STATE_FAILED", "TRIAL_STATE_INFEASIBLE"], pageSize: 500 }, signal);
    known = at;
    const found = /** @type {Map<string, {text: string, reason: string, trials: any[]}>} */ (new Map());
    for (const t of page.trials ?? []) {
      const text = (t.outcome?.message ?? "").trim();
      const reason = t.state === "TRIAL_STATE_INFEASIBLE" ? "infeasible" : (t.outcome?.reason ?? "").replace("FAIL_REASON_", "").toLowerCase() || "crash";
      const key = `${reason} ${text.replace(/\d+/g, "0")}`; // alike but for numbers
      if (!found.has(key)) found.set(key, { text, reason, trials: [] });
      found.get(key)?.trials.push(t);
    }
    groups = [...found.values()].sort((a, b) => b.trials.length - a.trials.length);
    body.replaceChildren(...groups.slice(0, 8).map((g) => {
      const lines = g.text.split("\n");
      const last = lines.slice(-12).join("\n");
      const cause = lines.findLast((l) => /error|exception|killed|fault|denied|not found/i.test(l)) ?? lines[lines.length - 1];
      return h("section", {}, h("p", {}, h("strong", {}, `${count(g.trials.length)} × ${g.reason}`), " ", h("span", { class: "message" }, cause.trim() || "without a message")),
        lines.length > 1 ? h("pre", { tabindex: "0", role: "region", "aria-label": `End of the log of ${g.reason}` }, last) : "",
        h("p", { class: "hint" }, "trials ", g.trials.slice(0, 12).flatMap((t, i) => [i ? ", " : "", h("a", { href: trialURL(s.name, Number(t.number ?? 0)) }, count(Number(t.number ?? 0)))]), g.trials.length > 12 ? ` and ${count(g.trials.length - 12)} more` : ""));
    }), groups.length > 8 ? h("p", { class: "hint" }, `${count(groups.length - 8)} more kinds are in the table.`) : "");
  }
  const element = figure({
    title: "What failed", name: `${s.name}-failures`, cli: `tuner trials ${quote(s.name)} --state failed`, body,
    rows: () => [["trial", "reason", "worker", "message"], ...groups.flatMap((g) => g.trials.map((t) => [Number(t.number ?? 0), g.reason, t.worker ?? "", t.outcome?.message ?? ""]))],
  });
  const title = element.querySelector("h2");
  return { element, update };
}
