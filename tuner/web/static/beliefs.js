// @ts-check
// What the model of a study predicts, and which parameters matter.

import { APIError, call } from "./api.js";

/** weigh asks how much each parameter matters. */
async function weigh(/** @type {import("./study.js").Study} */ s, /** @type {AbortSignal} */ signal) {
  const i = await call("GetImportance", { parent: `studies/${s.name}`, objective: s.objective().name }, signal);
  const share = (/** @type {any} */ x) => (x === undefined ? NaN : Number(x));
  s.importances = (i.parameters ?? []).map((/** @type {any} */ p) => ({ name: p.parameter, first: share(p.firstOrder), total: share(p.total), data: share(p.data) }))
    .filter((/** @type {any} */ p) => p.total === p.total || p.data === p.data);
  s.importanceNoise = Math.max(0, ...(i.parameters ?? []).map((/** @type {any} */ p) => Number(p.totalError ?? 0)));
  const of = (/** @type {any} */ p) => (p.total === p.total ? p.total : p.data);
  s.importances?.sort((a, b) => of(b) - of(a));
  s.noImportance = "Too few trials have completed to tell.";
}

/** beliefs asks for both. One may be refused without the other. */
export async function beliefs(/** @type {import("./study.js").Study} */ s, /** @type {AbortSignal} */ signal) {
  for (const ask of [weigh, predict]) {
    try {
      await ask(s, signal);
    } catch (e) {
      if (signal.aborted) return;
      if (!(e instanceof APIError)) throw e;
      if (ask === weigh) s.noImportance = e.message;
    }
  }
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
}
