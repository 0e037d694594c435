// @ts-check
// How long trials took and what they cost.

import { serverNow } from "./api.js";
import { count, css, duration, h, number, percent, quote, trialStateNames } from "./dom.js";
import { column } from "./columns.js";
import { figure } from "./figure.js";
import { bestSoFar, lineChart } from "./lines.js";
import { board, frame, moments, tips } from "./plot.js";

const mostWorkers = 50;
const fewTrials = 3; // of a worker, below which its median says little

/**
 * @param {import("./study.js").Study} s
 * @param {AbortSignal} signal
 */
export function cost(s, signal) {
  const chart = lineChart("Best so far over what was spent", signal);
  const by = h("select", { "aria-label": "What was spent", onchange: () => draw() }, h("option", { value: "time" }, "time of trials"), h("option", { value: "cost" }, "told cost"));
  const facts = h("p", { class: "hint" });
  const place = h("div", { class: "table-frame", tabindex: "0", role: "region", "aria-label": "Time and cost by state" });
  const body = h("div", {}, facts, place);
  const workers = h("div", { class: "table-frame", tabindex: "0", role: "region", "aria-label": "Time and cost by worker" });

  const slow = h("p", {});
  const { box: time, canvas, draw: drawTimes } = board("When each worker had which trial", paintTimes, signal);
  const timed = h("span", {}, [["--accent", "completed"], ["--third", "running"], ["--best", "failed"], ["--muted", "pruned"]].flatMap(([c, t]) => [h("span", { class: "key line", style: { "background-color": `var(${c})` } }), t]));
  let spot = (/** @type {number} */ _i, /** @type {number} */ _x) => /** @type {number[]|null} */ (null);
  tips(time, s, (i, x) => spot(i, x));

  /** spent is what a trial took, NaN if that is unknown. */
  function spent() {
    const [started, ended, told] = [column(s.table, "started"), column(s.table, "ended"), column(s.table, "cost")];
    return { ended, time: (/** @type {number} */ i) => ended[i] - started[i], cost: (/** @type {number} */ i) => told[i] };
  }

  /** grouped has a row for each name of a column of codes: trials, time in all, median and longest, and cost. */
  function grouped(/** @type {any} */ codes, /** @type {string[]} */ names) {
    const of = spent();
    const groups = names.map((name) => ({ name, n: 0, cost: 0, times: /** @type {number[]} */ ([]) }));
    for (let i = 0; i < s.table.n; i++) {
      const g = groups[codes[i]];
      g.n++;
      if (of.time(i) >= 0) g.times.push(of.time(i));
      g.cost += of.cost(i) || 0;
    }
    return groups.map(({ name, n, cost, times }) => {
      times.sort((a, b) => a - b);
      return { name, n, measured: times.length, total: times.reduce((a, b) => a + b, 0), median: times[times.length >> 1] ?? NaN, longest: times[times.length - 1] ?? NaN, cost };
    }).filter((r) => r.n && r.name);
  }
  const byState = () => grouped(column(s.table, "state"), trialStateNames);
  /** byWorker has a row for each worker that has a name, those with the most time first. An older server sends none. */
  function byWorker() {
    const c = s.table.columns.find((x) => x.name === "worker");
    return c ? grouped(c.data, c.labels ?? []).sort((a, b) => b.total - a.total || b.n - a.n) : [];
  }
  const titles = (/** @type {string} */ first) => [first, "trials", "seconds", "median seconds", "longest seconds", "cost"];
  const cells = (/** @type {any[]} */ rows) => rows.map((r) => [r.name, r.n, r.total, r.median, r.longest, r.cost]);
  const asTable = (/** @type {string} */ title, /** @type {string} */ first, /** @type {any[]} */ rows, /** @type {number} */ all) => h("table", {}, h("caption", { class: "sr" }, title), h("thead", {}, h("tr", {}, [first, "trials", "time in all", "share", "median", "longest", "cost"].map((t, i) => h("th", { scope: "col", class: i ? "num" : "" }, t)))),
    h("tbody", {}, rows.map((r) => h("tr", {}, h("th", { scope: "row" }, r.name), [count(r.n), r.measured ? duration(r.total) : "–", all ? percent(r.total / all) : "–", duration(r.median), duration(r.longest), r.cost ? number(r.cost, 4) : "–"].map((t) => h("td", { class: "num" }, t))))));

  async function update() {
    await s.need(["started", "ended", "cost", "worker"]);
    const rows = byState();
    const all = rows.reduce((sum, r) => sum + r.total, 0);
    const money = rows.reduce((sum, r) => sum + r.cost, 0);
    by.lastElementChild.disabled = !money;
    const most = Number(s.info.spec.maxCost ?? 0);
    const done = rows.find((r) => r.name === "completed")?.n ?? 0;
    facts.textContent = [all ? `The trials that ended took ${duration(all)} in all.` : "No trial has ended that this study ran.", money ? `They cost ${number(money, 5)}${most ? ` of at most ${number(most, 5)}` : ""}, which is ${number(money / Math.max(1, done), 4)} for each completed trial.` : "No costs were told."].join(" ");
    place.replaceChildren(asTable("Time and cost by state", "state", rows, all));
    const of = byWorker();
    workers.replaceChildren(asTable("Time and cost by worker", "worker", of.slice(0, mostWorkers), all), of.length > mostWorkers ? h("p", { class: "muted" }, `Only the first ${mostWorkers} of ${count(of.length)} workers are listed. The CSV has all of them.`) : "");
    whose.toggleAttribute("hidden", !of.length);
    slow.textContent = slowest(of.filter((w) => w.measured >= fewTrials));
    draw();
    when.toggleAttribute("hidden", !spans().length);
    drawTimes();
  }

  /** slowest names workers that take much longer than the others. */
  function slowest(/** @type {any[]} */ list) {
    if (list.length < 2) return "";
    const late = list.flatMap((w) => {
      const others = list.filter((x) => x !== w).map((x) => x.median).sort((a, b) => a - b);
      const ratio = w.median / others[others.length >> 1];
      return ratio > 1.3 ? [`${w.name} takes ${number(ratio, 2)} times as long as the others`] : [];
    });
    return late.length ? `By the median, ${late.join(", and ")}.` : "By the median, no worker is much slower than the others.";
  }

  /** spans are the times at which trials ran last, and on which worker. */
  function spans() {
    const [started, ended, c] = [column(s.table, "started"), column(s.table, "ended"), s.table.columns.find((x) => x.name === "worker")];
    if (!started || !ended) return [];
    const now = serverNow() / 1000;
    const out = [];
    for (let i = 0; i < s.table.n; i++) if (started[i] === started[i]) out.push({ i, from: started[i], to: ended[i] >= started[i] ? ended[i] : now, over: ended[i] >= started[i], name: c?.labels?.[c.data[i]] || "unnamed" });
    return out;
  }

  /** paintTimes draws each trial as a bar in the row of its worker. */
  function paintTimes(/** @type {number} */ width) {
    const list = spans();
    const names = [...new Set(list.map((p) => p.name))].sort().slice(0, mostWorkers);
    let [low, high] = [Infinity, -Infinity];
    for (const p of list) [low, high] = [Math.min(low, p.from), Math.max(high, p.to)];
    const axis = moments(low, Math.max(high, low + 1));
    const f = frame(canvas, { width, height: 56 + 26 * names.length, x: { title: "", ticks: axis.ticks, whole: true }, y: { title: "", ticks: names.map((label, k) => ({ label, u: 1 - (k + 0.5) / names.length })) } });
    const row = new Map(names.map((n, k) => [n, f.Y(1 - (k + 0.5) / names.length)]));
    const X = (/** @type {number} */ v) => f.X(axis.u(v));
    const at = new Map(list.map((p) => [p.i, p]));
    const colours = /** @type {Record<string, string>} */ ({ completed: css("--accent"), running: css("--third"), failed: css("--best"), infeasible: css("--best"), pruned: css("--muted") });
    for (const p of list) {
      const y = row.get(p.name);
      if (y === undefined) continue;
      f.g.fillStyle = colours[trialStateNames[column(s.table, "state")[p.i]]] ?? css("--muted");
      f.g.fillRect(X(p.from), y - 8, Math.max(1, X(p.to) - X(p.from) - 1), 16);
    }
    spot = (i, x) => {
      const p = at.get(i);
      const y = p && row.get(p.name);
      return p && y !== undefined ? [Math.max(X(p.from), Math.min(X(p.to), x)), y] : null;
    };
  }

  let line = { title: "", ...bestSoFar([], false) };
  function draw() {
    const of = spent();
    const [values, contending] = [s.values(), s.contending()];
    const each = by.value === "cost" ? of.cost : of.time;
    const order = Uint32Array.from(values.keys()).filter((i) => of.ended[i] === of.ended[i]).sort((a, b) => of.ended[a] - of.ended[b]);
    let sum = 0;
    const points = Array.from(order, (i) => /** @type {[number, number]} */ ([(sum += Math.max(0, each(i)) || 0), contending[i]]));
    const [unit, size] = by.value === "cost" ? ["cost", 1] : sum > 7200 ? ["hour", 3600] : sum > 120 ? ["minute", 60] : ["second", 1];
    for (const p of points) p[0] /= /** @type {number} */ (size);
    line = { title: unit === "cost" ? unit : `time of trials, ${unit}s`, ...bestSoFar(points, s.maximize()) };
    chart.draw(sum > 0 ? [{ name: `best ${s.objective().name}`, ...line, colour: "--best", width: 2, stepped: true }] : [], { maximize: s.maximize(), x: line.title, y: s.objective().name });
    element.toggleAttribute("hidden", !(sum > 0));
  }

  const element = figure({ title: "Best so far over what was spent", name: `${s.name}-spent`, wide: true, cli: `tuner trials ${quote(s.name)} -f csv`, canvas: chart.canvas, tools: [h("label", {}, "x ", by)], body: chart.element,
    rows: () => [[line.title, s.objective().name], ...line.x.map((x, i) => [x, line.y[i]])] });
  const table = figure({
    title: "Time and cost", name: `${s.name}-cost`, wide: true, cli: `tuner trials ${quote(s.name)} -f csv`, body,
    rows: () => [titles("state"), ...cells(byState())],
  });
  const whose = figure({
    title: "By worker", name: `${s.name}-workers`, wide: true, cli: `tuner trials ${quote(s.name)} -f csv`, body: h("div", {}, slow, workers),
    hint: "The worker that had a trial last counts.", rows: () => [titles("worker"), ...cells(byWorker())],
  });
  const when = figure({ title: "Timeline of the workers", name: `${s.name}-timeline`, wide: true, cli: `tuner trials ${quote(s.name)} -f csv`, canvas: () => canvas, hint: timed, body: time, rows: () => [["trial", "worker", "started", "ended", "state"], ...spans().map((p) => [p.i, p.name, new Date(p.from * 1000).toISOString(), p.over ? new Date(p.to * 1000).toISOString() : "", s.stateOf(p.i)])] });
  return { elements: [whose, when, table, element], update };
}
