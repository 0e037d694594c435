// @ts-check
// What the model of a study predicts.

import { call } from "./api.js";

/** beliefs asks for slices of the model through the recommended configuration. */
export async function beliefs(/** @type {import("./study.js").Study} */ s, /** @type {AbortSignal} */ signal) {
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
