// @ts-check
// What the model of a study predicts, which parameters matter, and its state in words.

import { APIError, call } from "./api.js";
import { count, h, number, percent, quote } from "./dom.js";
import { figure } from "./figure.js";

/** weigh asks how much each parameter matters for each objective. */
async function weigh(/** @type {import("./study.js").Study} */ s, /** @type {AbortSignal} */ signal) {
  const share = (/** @type {any} */ x) => (x === undefined ? NaN : Number(x));
  const of = (/** @type {any} */ p) => (p.total === p.total ? p.total : p.data);
  await Promise.all(s.info.spec.objectives.map(async (/** @type {any} */ o, /** @type {number} */ k) => {
    const i = await call("GetImportance", { parent: `studies/${s.name}`, objective: o.name }, signal);
    s.weights.set(k, (i.parameters ?? []).map((/** @type {any} */ p) => ({ name: p.parameter, first: share(p.firstOrder), total: share(p.total), data: share(p.data) }))
      .filter((/** @type {any} */ p) => of(p) === of(p)).sort((/** @type {any} */ a, /** @type {any} */ b) => of(b) - of(a)));
    if (k === s.chosen) s.importanceNoise = Math.max(0, ...(i.parameters ?? []).map((/** @type {any} */ p) => Number(p.totalError ?? 0)));
  }));
  s.noImportance = "Too few trials have completed to tell.";
}

/** beliefs asks for both. One may be refused without the other. */
export async function beliefs(/** @type {import("./study.js").Study} */ s, /** @type {AbortSignal} */ signal) {
  const asks = s.modelled() ? [weigh, predict, diagnose] : [weigh];
  for (const ask of asks) {
    try {
      await ask(s, signal);
    } catch (e) {
      if (signal.aborted) return;
      if (!(e instanceof APIError)) throw e;
      if (ask === weigh) s.noImportance = e.message;
    }
  }
}

/** diagnose asks how good the model is. */
async function diagnose(/** @type {import("./study.js").Study} */ s, /** @type {AbortSignal} */ signal) {
  s.diagnosis = await call("GetDiagnosis", { parent: `studies/${s.name}` }, signal);
}

/** predict asks for slices of the model through the recommended configuration. */
async function predict(/** @type {import("./study.js").Study} */ s, /** @type {AbortSignal} */ signal) {
  const p = await call("Predict", { parent: `studies/${s.name}`, slices: {} }, signal);
  s.diagnosis = { ...s.diagnosis, state: p.state, missingResults: p.missingResults };
  s.recommended = p.trial === undefined ? -1 : Number(p.trial);
  s.slices = new Map((p.slices ?? []).map((/** @type {any} */ l) => {
    const pick = (/** @type {string} */ key) => l.predictions.map((/** @type {any} */ q) => Number(q[key]?.[s.chosen] ?? 0));
    return [l.parameter, { name: l.parameter, u: l.at.map(Number), mean: pick("mean"), sd: pick("stdDev"), values: l.values, at: NaN }];
  }));
  const text = (/** @type {any} */ v) => String(Object.values(v ?? {})[0]);
  for (const [name, l] of s.slices) {
    // The place of the recommended value, which need not be a point of the slice.
    const at = p.through?.values?.[name];
    let near = 0;
    l.values.forEach((/** @type {any} */ v, /** @type {number} */ k) => {
      if (text(v) === text(at) || Math.abs(Number(text(v)) - Number(text(at))) < Math.abs(Number(text(l.values[near])) - Number(text(at)))) near = k;
    });
    l.at = l.u[near];
  }
  s.believed = null;
  s.through = p.through?.values ?? null;
  s.asked++;
  s.bestThen = s.best();
  if (s.recommended < 0 || !p.through) return;
  const here = (await call("Predict", { parent: `studies/${s.name}`, configs: [p.through] }, signal)).configs?.[0];
  if (here?.mean?.length) s.believed = { trial: s.recommended, mean: here.mean[s.chosen], sd: here.stdDev[s.chosen], noise: here.noise?.[s.chosen] ?? 0 };
}

/**
 * importances shows shares of variance beside shares by the data, and with several objectives
 * one share for each.
 * @param {import("./study.js").Study} s
 */
export function importances(s) {
  const body = h("div", { class: "importances" });
  let rows = /** @type {any[][]} */ ([["parameter"]]);
  const main = (/** @type {any} */ p) => (p?.total === p?.total ? p?.total : p?.data) ?? NaN;
  const share = (/** @type {number} */ x) => (x === x ? percent(Math.max(0, x)) : "–");
  function update() {
    const list = s.importances ?? [];
    if (!list.length) {
      body.replaceChildren(h("p", { class: "empty" }, s.noImportance));
      return;
    }
    const model = list.some((p) => p.total === p.total);
    const several = s.info.spec.objectives.length > 1;
    const columns = several ? s.info.spec.objectives.map((/** @type {any} */ o, /** @type {number} */ k) => ({ title: o.name, hint: `Share for ${o.name}`, of: (/** @type {any} */ p) => main(s.weights.get(k)?.find((q) => q.name === p.name)), bar: true }))
      : [model && { title: "alone", hint: "First-order Sobol index of the mean of the model", of: (/** @type {any} */ p) => p.first }, model && { title: "total", hint: "Total Sobol index of the mean of the model", of: (/** @type {any} */ p) => p.total },
        { title: "best trials", hint: "PED-ANOVA, where the best tenth of the trials lie", of: (/** @type {any} */ p) => p.data }].filter(Boolean);
    rows = [["parameter", ...columns.map((/** @type {any} */ c) => c.title)], ...list.map((p) => [p.name, ...columns.map((/** @type {any} */ c) => c.of(p))])];
    const most = (/** @type {(p: any) => number} */ of) => Math.max(1e-9, ...list.map(of).filter((v) => v === v));
    const bar = (/** @type {number} */ x, /** @type {number} */ all) => h("span", { class: "bar", style: { width: `${x === x ? Math.max(1, (100 * x) / all) : 0}%` } });
    body.replaceChildren(
      h("table", {},
        h("caption", { class: "sr" }, "Importance of each parameter"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "parameter"), !several && h("th", { scope: "col", class: "bar-cell" }, h("span", { class: "sr" }, "as a bar")), columns.map((/** @type {any} */ c) => h("th", { scope: "col", title: c.hint }, c.title)))),
        h("tbody", {}, list.map((p) => h("tr", {},
          h("th", { scope: "row", title: p.name }, p.name), !several && h("td", { class: "bar-cell" }, bar(main(p), most(main))),
          columns.map((/** @type {any} */ c) => h("td", {}, share(c.of(p)), c.bar && bar(c.of(p), most(c.of)))))))),
      h("p", { class: "hint" }, several ? `The ${model ? "total share of the variance of the model's mean" : "share by the places of the best tenth of the trials"} for each objective.` : model
        ? `Alone and total are shares of the variance of the model's mean, without and with interactions${s.importanceNoise ? `, within ±${percent(s.importanceNoise)}` : ""}. Best trials is a share by the places of the best tenth of the trials. The measures answer different questions, so they differ.`
        : "The share by the places of the best tenth of the trials. A model adds shares of the variance of its mean."));
  }
  const element = figure({ title: "Which parameters matter", name: `${s.name}-importance`, body, cli: `tuner importance ${quote(s.name)}`, rows: () => rows });
  return { element, update };
}

/** words describes a diagnosis in sentences. Each is a text and whether it is a warning. @returns {[string, boolean][]} */
export function words(/** @type {any} */ d, /** @type {{name: string, best: number|undefined}} */ objective) {
  const out = /** @type {[string, boolean][]} */ ([]);
  const m = Number(d.inducingPoints ?? 0);
  if (m === 0) {
    if (d.state === "MODEL_STATE_AT_NEXT_ASK") out.push(["There are enough results for a model. The next ask makes it.", false]);
    else if (d.state === "MODEL_STATE_NONE") out.push(["There is no model, because the space has no parameter to model.", false]);
    else if (d.missingResults) out.push([`There is no model yet. It needs ${count(Number(d.missingResults))} more results.`, false]);
    else out.push(["There is no model yet. It needs more results, or the next ask makes it.", false]);
  } else {
    const n = Number(d.results ?? 0);
    out.push([`The model knows ${count(n)} results and represents them by ${count(m)} inducing points.`, false]);
    if (d.capped) out.push([`The option cap limits the model to ${count(m)} inducing points. A larger cap would make it more precise and slower. The effective dimension was ${number(d.effectiveDimension, 3)} when the points were drawn.`, true]);
    else if (d.effectiveDimension) out.push([`The effective dimension of the results is ${number(d.effectiveDimension, 3)}, so the inducing points suffice.`, false]);
    if (d.noise !== undefined) out.push([`It takes ${number(d.noise, 3)} for the standard deviation of the noise of an outcome.`, false]);
    const failed = Number(d.failures ?? 0);
    if (failed > 0) {
      const effect = d.avoidsFailures ? "Suggestions avoid places like theirs." : "Suggestions do not avoid their places.";
      out.push([`${failed === 1 ? "One result is" : `${count(failed)} results are`} infeasible or failed. ${effect}`, false]);
    }
    if (d.gap !== undefined) {
      const g = Number(d.gap);
      out.push([Number.isFinite(g) ? `Under the model no configuration is better than the best by more than ${number(g, 3)} in ${objective.name}.` : "Its confidence bounds do not yet limit how much better a configuration could be.", false]);
    }
    const predicted = Number(d.predicted ?? 0);
    if (predicted > 0) out.push([`${count(Number(d.covered ?? 0))} of the last ${count(predicted)} outcomes are in the 95 % intervals that were predicted for them.`, false]);
    if (d.beta !== undefined && d.theoryBeta) out.push([`The confidence bounds are ${number(d.beta, 3)} standard deviations wide. Theory asks for ${number(d.theoryBeta, 3)}.`, false]);
  }
  for (const w of d.warnings ?? []) out.push([w, true]);
  return out;
}

// SCALES is the largest number of length scales in words, the shortest ones. Downloads have all.
const SCALES = 10;

/**
 * diagnosis shows the model in words and figures.
 * @param {import("./study.js").Study} s
 * @param {AbortSignal} signal
 */
export function diagnosis(s, signal) {
  const body = h("div", { class: "diagnosis" }, h("p", { class: "skeleton" }, "Loading the model"));
  let facts = /** @type {any[][]} */ ([]);
  async function update() {
    let d;
    if (!s.modelled()) return body.replaceChildren(h("p", { class: "empty" }, "The proposer of this study uses no model."));
    try {
      d = await call("GetDiagnosis", { parent: `studies/${s.name}` }, signal);
    } catch (e) {
      if (signal.aborted) return;
      body.replaceChildren(h("p", { class: "error" }, /** @type {any} */ (e).message));
      return;
    }
    s.diagnosis = d;
    const scales = Object.entries(d.lengthScales ?? {}).sort((a, b) => Number(a[1]) - Number(b[1])).map(([k, v]) => [`length scale of ${k}`, v]);
    const more = Math.max(scales.length - SCALES, 0);
    facts = [["results in the model", Number(d.results ?? 0)], ["inducing points", `${count(Number(d.inducingPoints ?? 0))}${d.capped ? " (capped)" : ""}`],
      ["effective dimension", d.capped ? `${number(d.effectiveDimension, 4)} (the number of points is capped)` : d.effectiveDimension ?? NaN], ["information gain", d.informationGain ?? NaN], ["noise (standard deviation)", d.noise ?? NaN],
      ["width of the bounds, used", d.beta ?? NaN], ["width of the bounds, by theory", d.theoryBeta ?? NaN], ["possible improvement under the model", d.gap === undefined ? NaN : Number(d.gap)],
      ["outcomes in 95 % intervals", d.predicted ? `${count(Number(d.covered ?? 0))} of ${count(Number(d.predicted))}` : NaN],
      ...scales];
    const shown = more ? [...facts.slice(0, -more), ["length scales of others", `${count(more)} more, longer`]] : facts;
    body.replaceChildren(
      h("ul", { class: "words" }, words(d, { name: s.objective().name, best: undefined }).map(([text, warning]) => h("li", { class: warning ? "warning" : "" }, warning && h("strong", {}, "Note. "), text))),
      Number(d.inducingPoints ?? 0) > 0 ? h("dl", { class: "facts column" }, shown.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, typeof v === "number" ? number(v, 4) : v)))) : "");
  }
  const element = figure({ title: "The model in words", name: `${s.name}-model`, body, cli: `tuner diagnose ${quote(s.name)}`, wide: true, rows: () => [["quantity", "value"], ...facts] });
  return { element, update };
}
