// @ts-check
// What a study was created with, and its notes.

import { copy, count, duration, h, number, quote, yaml } from "./dom.js";
import { notes } from "./actions.js";
import { figure } from "./figure.js";

/** asYAML writes a space as files of spaces have it, a parameter on each line. */
function asYAML(/** @type {string} */ json) {
  // A whole number may be larger than a number of JavaScript holds.
  const exact = (/** @type {string} */ _, /** @type {any} */ v, /** @type {any} */ c) => (typeof v === "number" && !Number.isSafeInteger(v) && /^-?\d+$/.test(c?.source ?? "") ? BigInt(c.source) : v);
  const { parameters, constraints, ...others } = JSON.parse(json, exact);
  delete others.version;
  return [`parameters:`, ...Object.entries(parameters).map(([k, p]) => `  ${yaml(k)}: ${yaml(p)}`), ...(constraints?.length ? ["constraints:", ...constraints.map((/** @type {any} */ c) => `  - ${typeof c === "string" ? (/[:#]/.test(c) ? JSON.stringify(c) : c) : yaml(c)}`)] : []), ...Object.entries(others).map(([k, v]) => `${k}: ${yaml(v)}`), ""].join("\n");
}

/** settings shows the spec of a study, and its notes. */
export function settings(/** @type {import("./study.js").Study} */ s, /** @type {() => void} */ changed) {
  const body = h("div", {});
  function update() {
    const { spec, attributes, position, createTime, uid } = s.info;
    const component = (/** @type {any} */ c, /** @type {string} */ usual) => (c?.name ? `${c.name}${c.options ? ` ${yaml(JSON.parse(c.options))}` : ""}` : usual);
    const time = (/** @type {string|undefined} */ t, /** @type {string} */ usual) => (t ? duration(parseFloat(t)) : usual);
    const items = [["objectives", spec.objectives.map((/** @type {any} */ o) => `${o.name} (${o.direction === "DIRECTION_MAXIMIZE" ? "maximize" : "minimize"})`).join(", ")],
      ["largest number of trials", spec.maxTrials ? count(Number(spec.maxTrials)) : "no limit"], ["timeout", time(spec.timeout, "none")], ["largest cost", spec.maxCost ? number(spec.maxCost) : "no limit"],
      ["lease", time(spec.lease, "1 h")], ["retries", spec.maxRetries ?? 0], ["seed", spec.seed ?? "0"], ["proposer", component(spec.proposer, "bkb")], ["pruner", component(spec.pruner, "none")],
      ["created", new Date(createTime).toLocaleString()], ["position of the log", count(Number(position ?? 0))], ["uid", uid]];
    body.replaceChildren(
      h("dl", { class: "facts column" }, items.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v)))),
      h("h3", {}, "Space"), h("pre", { tabindex: "0", role: "region", "aria-label": "Search space" }, asYAML(spec.space)), copy(asYAML(spec.space), "Copy the search space"));
    place.replaceChildren(notes({ name: `studies/${s.name}`, attributes: attributes ?? {}, changed, scope: "admin" }));
  }
  const place = h("div");
  return { element: h("div", { class: "side" }, figure({ title: "Settings", name: `${s.name}-settings`, wide: true, cli: `tuner studies ${quote(s.name)} -f json`, body }), place), update };
}
