// @ts-check
// Several trials of a study beside each other.

import { APIError, call, offline } from "./api.js";
import { at, INACTIVE, limited, objectives, parameters, TOP } from "./columns.js";
import { count, h, number, quote, trialURL } from "./dom.js";
import { figure } from "./figure.js";

/** mostTrials is how many trials the page compares. */
export const mostTrials = 8;

const value = (/** @type {any} */ v) => v.floatValue ?? v.stringValue ?? (v.intValue !== undefined ? Number(v.intValue) : v.boolValue);

/**
 * beside compares the chosen trials of a study.
 * @param {import("./study.js").Study} s
 * @param {() => number[]} chosen
 */
export function beside(s, chosen) {
  const only = h("input", { type: "checkbox", onchange: () => draw() });
  const place = h("div", { class: "table-frame", tabindex: "0", role: "region", "aria-label": "Trials compared" });
  const exact = /** @type {Map<number, Record<string, any>>} */ (new Map()); // configurations never change

  /** rows has a row for each value, with the trials as columns. */
  function rows() {
    const list = chosen();
    const config = (/** @type {any} */ c, /** @type {number} */ i) => {
      const known = exact.get(i);
      if (known) return c.name in known ? value(known[c.name]) : "";
      return c.data[i] === INACTIVE ? "" : at(c.axis, c.data[i] / TOP);
    };
    const all = [
      ["state", ...list.map((i) => s.stateOf(i))],
      ...[...objectives(s.table), ...limited(s.table)].map((c) => [c.name, ...list.map((i) => c.data[i])]),
      ...parameters(s.table).map((c) => [c.name, ...list.map((i) => config(c, i))]),
    ];
    return { list, all, differs: (/** @type {any[]} */ r) => r.slice(1).some((v) => v !== r[1] && !(v !== v && r[1] !== r[1])) };
  }

  function draw() {
    const { list, all, differs } = rows();
    element.toggleAttribute("hidden", list.length < 2);
    const shown = only.checked ? all.filter(differs) : all;
    place.replaceChildren(h("table", {}, h("caption", { class: "sr" }, "Trials compared"),
      h("thead", {}, h("tr", {}, h("td"), list.map((i) => h("th", { scope: "col", class: "num" }, h("a", { href: trialURL(s.name, i) }, `#${count(i)}`))))),
      h("tbody", {}, shown.map((r) => h("tr", { class: differs(r) ? "" : "muted" }, h("th", { scope: "row" }, r[0]), r.slice(1).map((v) => h("td", { class: "num" }, typeof v === "number" ? number(v, 6) : String(v) || "inactive")))))));
  }

  /** update shows what is known, and loads exact configurations. */
  async function update() {
    draw();
    if (offline) return;
    const missing = chosen().filter((i) => !exact.has(i));
    if (chosen().length < 2 || !missing.length) return;
    try {
      await Promise.all(missing.map(async (i) => exact.set(i, (await call("GetTrial", { name: `studies/${s.name}/trials/${i}` })).config ?? {})));
    } catch (e) {
      if (!(e instanceof APIError)) throw e;
    }
    draw();
  }

  const element = figure({
    title: "Compare trials", name: `${s.name}-compared`, wide: true, cli: `tuner trials ${quote(s.name)} -f csv`,
    hint: "Rows in which all trials are equal are grey.", tools: [h("label", {}, only, " only differences")],
    rows: () => [["", ...rows().list.map((i) => `#${i}`)], ...rows().all], body: place,
  });
  element.hidden = true;
  return { element, update };
}
