// @ts-check
// Which parameters matter, and the state of the model in words.

import { call } from "./api.js";
import { count, h, number, percent } from "./dom.js";
import { figure } from "./figure.js";

/**
 * importances shows shares of variance beside shares by the data.
 * @param {import("./study.js").Study} s
 */
export function importances(s) {
  const body = h("div", { class: "importances" });
  let rows = /** @type {any[][]} */ ([]);
  function update() {
    const list = s.importances ?? [];
    rows = list.map((p) => [p.name, p.first, p.total, p.data]);
    if (!list.length) {
      body.replaceChildren(h("p", { class: "empty" }, s.noImportance));
      return;
    }
    const model = list.some((p) => p.total === p.total);
    const main = (/** @type {any} */ p) => (model ? p.total : p.data);
    const most = Math.max(1e-9, ...list.map(main));
    body.replaceChildren(
      h("table", {},
        h("caption", { class: "sr" }, "Importance of each parameter"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "parameter"), h("th", { scope: "col", class: "bar-cell" }, h("span", { class: "sr" }, "as a bar")),
          model && h("th", { scope: "col", title: "First-order Sobol index of the mean of the model" }, "alone"), model && h("th", { scope: "col", title: "Total Sobol index of the mean of the model" }, "in all"),
          h("th", { scope: "col", title: "PED-ANOVA, where the best tenth of the trials lie" }, "data"))),
        h("tbody", {}, list.map((p) => h("tr", {},
          h("th", { scope: "row", title: p.name }, p.name),
          h("td", { class: "bar-cell" }, h("span", { class: "bar", style: { width: `${Math.max(1, (100 * main(p)) / most)}%` } })),
          model && h("td", {}, share(p.first)), model && h("td", {}, share(p.total)), h("td", {}, share(p.data)))))),
      h("p", { class: "hint" }, model
        ? `Alone and in all are shares of the variance of the model's mean, without and with interactions${s.importanceNoise ? `, within ±${percent(s.importanceNoise)}` : ""}. Data is a share by the places of the best tenth of the trials. The measures answer different questions, so they differ.`
        : "The share by the places of the best tenth of the trials. A model adds shares of the variance of its mean."));
  }
  const share = (/** @type {number} */ x) => (x === x ? percent(Math.max(0, x)) : "–");
  const element = figure({ title: "Which parameters matter", name: `${s.name}-importance`, body, cli: `tuner importance ${s.name}`, rows: () => [["parameter", "alone", "in all", "data"], ...rows] });
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
    try {
      d = await call("GetDiagnosis", { parent: `studies/${s.name}` }, signal);
    } catch (e) {
      if (signal.aborted) return;
      const reason = /** @type {any} */ (e).reason;
      body.replaceChildren(h("p", { class: reason === "UNSUPPORTED" ? "empty" : "error" }, reason === "UNSUPPORTED" ? "The proposer of this study uses no model." : /** @type {any} */ (e).message));
      return;
    }
    s.diagnosis = d;
    facts = [["results in the model", Number(d.results ?? 0)], ["inducing points", `${count(Number(d.inducingPoints ?? 0))}${d.capped ? " (capped)" : ""}`],
      ["effective dimension", d.capped ? `${number(d.effectiveDimension, 4)} (the number of points is capped)` : d.effectiveDimension ?? NaN], ["information gain", d.informationGain ?? NaN], ["noise (standard deviation)", d.noise ?? NaN],
      ["width of the bounds, used", d.beta ?? NaN], ["width of the bounds, by theory", d.theoryBeta ?? NaN], ["possible improvement under the model", d.gap === undefined ? NaN : Number(d.gap)],
      ["outcomes in 95 % intervals", d.predicted ? `${count(Number(d.covered ?? 0))} of ${count(Number(d.predicted))}` : NaN],
      ...Object.entries(d.lengthScales ?? {}).map(([k, v]) => [`length scale of ${k}`, v])];
    body.replaceChildren(
      h("ul", { class: "words" }, words(d, { name: s.objective().name, best: undefined }).map(([text, warning]) => h("li", { class: warning ? "warning" : "" }, warning && h("strong", {}, "Note. "), text))),
      Number(d.inducingPoints ?? 0) > 0 ? h("dl", { class: "facts column" }, facts.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, typeof v === "number" ? number(v, 4) : v)))) : "");
  }
  const element = figure({ title: "The model in words", name: `${s.name}-model`, body, cli: `tuner diagnose ${s.name}`, wide: true, rows: () => [["quantity", "value"], ...facts] });
  return { element, update };
}
