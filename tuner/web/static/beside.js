// @ts-check
// Several trials of a study beside each other.

import { exact, limited, objectives, parameters } from "./columns.js";
import { count, exactly, h, quote, trialURL } from "./dom.js";
import { figure } from "./figure.js";

/** mostTrials is how many trials the page compares. */
export const mostTrials = 8;

/**
 * beside compares the chosen trials of a study.
 * @param {import("./study.js").Study} s
 * @param {() => number[]} chosen
 */
export function beside(s, chosen) {
  const only = h("input", { type: "checkbox", onchange: () => draw() });
  const place = h("div", { class: "table-frame", tabindex: "0", role: "region", "aria-label": "Trials compared" });

  /** rows has a row for each value, with the trials as columns. */
  function rows() {
    const list = chosen();
    const all = [
      ["state", ...list.map((i) => s.stateOf(i))],
      ...[...objectives(s.table), ...limited(s.table)].map((c) => [c.name, ...list.map((i) => c.data[i])]),
      ...parameters(s.table).map((c) => [c.name, ...list.map(exact(s.table, c))]),
    ];
    return { list, all, differs: (/** @type {any[]} */ r) => r.slice(1).some((v) => v !== r[1] && !(v !== v && r[1] !== r[1])) };
  }

  function draw() {
    const { list, all, differs } = rows();
    element.toggleAttribute("hidden", list.length < 2);
    const shown = only.checked ? all.filter(differs) : all;
    place.replaceChildren(h("table", {}, h("caption", { class: "sr" }, "Trials compared"),
      h("thead", {}, h("tr", {}, h("td"), list.map((i) => h("th", { scope: "col", class: "num" }, h("a", { href: trialURL(s.name, i) }, `#${count(i)}`))))),
      h("tbody", {}, shown.map((r) => h("tr", { class: differs(r) ? "" : "muted" }, h("th", { scope: "row" }, r[0]), r.slice(1).map((v) => h("td", { class: "num" }, exactly(v) || "inactive")))))));
  }

  const element = figure({
    title: "Compare trials", name: `${s.name}-compared`, wide: true, cli: `tuner trials ${quote(s.name)} -f csv`,
    hint: "Rows in which all trials are equal are grey.", tools: [h("label", {}, only, " only differences")],
    rows: () => [["", ...rows().list.map((i) => `#${i}`)], ...rows().all], body: place,
  });
  element.hidden = true;
  return { element, update: draw };
}
