// @ts-check
// What many trials reported, as one line each.

import { count, h, quote, trialStateNames, trialURL } from "./dom.js";
import { column } from "./columns.js";
import { figure } from "./figure.js";
import { lineChart } from "./lines.js";
import { loadReports, thin } from "./running.js";

const [mostBest, mostOthers, atOnce, mostPoints] = [20, 10, 6, 240];
const stateNumber = (/** @type {string} */ name) => trialStateNames.indexOf(name);

/**
 * @param {import("./study.js").Study} s
 * @param {AbortSignal} signal
 */
export function curves(s, signal) {
  const chart = lineChart("Reported values", signal);
  const note = h("p", { class: "hint" });
  const log = h("input", { type: "checkbox", onchange: () => draw(log.checked) });
  const wanted = h("input", { type: "text", size: "12", inputmode: "numeric", placeholder: "12 31", "aria-label": "Numbers of further trials", onchange: () => update() });
  const metric = h("select", { "aria-label": "Metric", onchange: () => draw() });
  const known = /** @type {Map<number, {epoch: number, curves: Map<string, {x: number[], y: number[]}>}>} */ (new Map());
  const curveOf = (/** @type {number} */ n) => known.get(n)?.curves.get(metric.value || s.objective().name) ?? { x: [], y: [] };
  let chosen = /** @type {{n: number, kind: string}[]} */ ([]);
  let busy = false;

  /** choose lists the trials to draw, those in front last. */
  function choose() {
    const [states, reported, values] = [column(s.table, "state"), column(s.table, `report/${s.objective().name}`), s.contending()];
    const newest = (/** @type {string} */ state, /** @type {number} */ most) => {
      const out = [];
      for (let i = s.table.n - 1; i >= 0 && out.length < most; i--) if (states[i] === stateNumber(state) && reported[i] === reported[i]) out.push(i);
      return out;
    };
    const best = [];
    for (let i = 0; i < s.table.n; i++) if (reported[i] === reported[i] && values[i] === values[i]) best.push(i);
    const sign = s.maximize() ? -1 : 1;
    best.sort((a, b) => sign * (values[a] - values[b]) || a - b);
    const asked = wanted.value.split(/[^\d]+/).filter(Boolean).map(Number).filter((/** @type {number} */ n) => n < s.table.n).slice(0, mostOthers);
    const all = [...newest("pruned", mostOthers).map((n) => ({ n, kind: "pruned" })), ...best.slice(0, mostBest).reverse().map((n) => ({ n, kind: n === best[0] ? "best" : "completed" })), ...newest("running", mostOthers).map((n) => ({ n, kind: "running" })), ...asked.map((/** @type {number} */ n) => ({ n, kind: "chosen" }))];
    return all.filter((c, i) => all.findLastIndex((d) => d.n === c.n) === i);
  }

  async function update() {
    if (busy) return;
    busy = true;
    try {
      await s.need(["report/", "epoch"]);
      chosen = choose();
      const [epochs, changed] = [column(s.table, "epoch"), s.changed && new Set(s.changed)];
      const due = chosen.filter((c) => !known.has(c.n) || (c.kind === "running" && (!changed || changed.has(c.n))) || known.get(c.n)?.epoch !== epochs[c.n]).map((c) => c.n);
      await Promise.all(Array.from({ length: atOnce }, async () => {
        for (let n = due.pop(); n !== undefined && !signal.aborted; n = due.pop()) {
          const reports = await loadReports(`studies/${s.name}/trials/${n}`, signal);
          const last = [...reports.values()].flat().reduce((e, p) => Math.max(e, Number(p.epoch)), 0);
          known.set(n, { epoch: epochs[n], curves: new Map([...reports].map(([name, all]) => {
            const points = thin(all.filter((p) => Number(p.epoch) === last && Number.isFinite(p.value)), mostPoints);
            return [name, { x: points.map((p) => p.step), y: points.map((p) => p.value) }];
          })) });
        }
      }));
      draw();
    } finally {
      busy = false;
    }
  }

  const style = /** @type {Record<string, any>} */ ({ best: { colour: "--best", width: 2.5 }, completed: { colour: "--accent", width: 1 }, running: { colour: "--third", width: 2 }, pruned: { colour: "--muted", dash: [5, 4], width: 1 }, chosen: { colour: "--fg", width: 2 } });
  function draw(/** @type {boolean|undefined} */ want = undefined) {
    if (want !== undefined) log.dataset.set = "1";
    const names = [...new Set([s.objective().name, ...[...known.values()].flatMap((k) => [...k.curves.keys()])])];
    if (metric.childElementCount !== names.length) metric.replaceChildren(...names.map((n) => h("option", { value: n, selected: n === metric.value }, n)));
    const lines = chosen.flatMap((c) => {
      const k = curveOf(c.n);
      return k.x.length ? [{ name: `#${c.n} (${c.kind})`, href: trialURL(s.name, c.n), x: k.x, y: k.y, ...style[c.kind] }] : [];
    });
    const sc = chart.draw(lines, { maximize: s.maximize(), log: want ?? (log.dataset.set ? log.checked : undefined), x: "step", y: metric.value, whole: true });
    log.checked = sc.log;
    log.disabled = !(sc.low > 0);
    const of = (/** @type {string} */ kind) => lines.filter((l) => l.name.endsWith(`(${kind})`)).length;
    note.replaceChildren(...(lines.length
      ? /** @type {[string, string][]} */ ([["best", "the best trial"], ["completed", `${count(of("completed"))} of the next best`], ["running", `${count(of("running"))} running`], ["pruned", `${count(of("pruned"))} pruned last, dashed`], ["chosen", "chosen"]]).filter(([kind]) => of(kind)).flatMap(([kind, text]) => [h("span", { class: "key line", style: { "background-color": `var(${style[kind].colour})` } }), text])
      : ["No trial has reported this objective. Workers report values while they run with tuner report."]));
  }

  const element = figure({
    title: "Reported values", name: `${s.name}-curves`, wide: true, cli: `tuner plot ${quote(s.name)} --only curves`, canvas: chart.canvas,
    tools: [h("label", {}, "metric ", metric), h("label", {}, log, " log"), h("label", {}, "also trials ", wanted)],
    body: h("div", {}, chart.element, note),
    rows: () => [["trial", "kind", "step", metric.value], ...chosen.flatMap((c) => curveOf(c.n).x.map((x, i) => [c.n, c.kind, x, curveOf(c.n).y[i]]))],
  });
  return { element, update };
}
