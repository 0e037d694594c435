// @ts-check
// What a study was created with, and its notes.

import { count, h, number } from "./dom.js";
import { notes } from "./actions.js";
import { figure } from "./figure.js";

/** settings shows the spec of a study, and its notes. */
export function settings(/** @type {import("./study.js").Study} */ s, /** @type {() => void} */ changed) {
  const body = h("div", {});
  function update() {
    const { spec, attributes, position, createTime, uid } = s.info;
    let space = spec.space;
    try {
      space = JSON.stringify(JSON.parse(spec.space), null, 2);
    } catch { /* it is shown as it is */ }
    const component = (/** @type {any} */ c) => (c?.name ? `${c.name}${c.options ? ` ${c.options}` : ""}` : "the default");
    const items = [["objectives", spec.objectives.map((/** @type {any} */ o) => `${o.name} (${o.direction === "DIRECTION_MAXIMIZE" ? "maximize" : "minimize"})`).join(", ")],
      ["largest number of trials", spec.maxTrials ? count(Number(spec.maxTrials)) : "no limit"], ["timeout", spec.timeout ?? "none"], ["largest cost", spec.maxCost ? number(spec.maxCost) : "no limit"],
      ["lease", spec.lease ?? "1 hour"], ["retries", spec.maxRetries ?? 0], ["seed", spec.seed ?? "0"], ["proposer", component(spec.proposer)], ["pruner", component(spec.pruner)],
      ["created", new Date(createTime).toLocaleString()], ["position of the log", count(Number(position ?? 0))], ["uid", uid]];
    body.replaceChildren(
      h("dl", { class: "facts column" }, items.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v)))),
      h("h3", {}, "Space"), h("pre", { tabindex: "0", role: "region", "aria-label": "Search space" }, space));
    place.replaceChildren(notes({ name: `studies/${s.name}`, attributes: attributes ?? {}, changed, scope: "admin" }));
  }
  const place = h("div");
  return { element: h("div", { class: "side" }, figure({ title: "Settings", name: `${s.name}-settings`, wide: true, cli: `tuner studies -f json`, body }), place), update };
}
