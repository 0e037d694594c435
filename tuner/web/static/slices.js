// @ts-check
// The objective over each parameter. Points are trials. The line is the mean of the model
// through the recommended configuration, and the band two standard deviations around it.

import { css, h, onScheme, onWidth, quote } from "./dom.js";
import { at, INACTIVE, jittered, parameters, scale, TOP } from "./columns.js";
import { figure } from "./figure.js";
import { frame, line, tips } from "./plot.js";

const height = 190;
const fewest = 12; // parameters that are drawn unasked

/**
 * @typedef {{name: string, u: number[], mean: number[], sd: number[], at: number}} Slice
 * @param {import("./study.js").Study} s
 * @param {AbortSignal} signal
 */
export function slices(s, signal) {
  const grid = h("div", { class: "slices" });
  const note = h("p", { class: "hint" });
  const more = h("button", { type: "button", class: "quiet", hidden: true, onclick: () => {
    all = true;
    make();
  } });
  let all = false;
  let cells = /** @type {{c: any, canvas: HTMLCanvasElement, drawn: any, place: (i: number) => number[]|null}[]} */ ([]);
  let sc = scale(new Float64Array(0), false);

  function make() {
    sc = scale(s.ranked().sorted, s.maximize());
    const order = s.importance();
    const list = parameters(s.table).sort((a, b) => (order.get(b.name) ?? 0) - (order.get(a.name) ?? 0));
    more.hidden = all || list.length <= fewest;
    more.textContent = `All ${list.length} parameters`;
    cells = list.slice(0, all ? list.length : fewest).map((c) => ({ c, drawn: jittered(c, s.table.n), place: () => null, canvas: h("canvas", { role: "img", "aria-label": `${s.objective().name} over ${c.name}` }) }));
    grid.replaceChildren(...cells.map((cell) => {
      const box = h("div", { class: "chart" }, cell.canvas);
      tips(box, s, (i) => cell.place(i));
      return h("figure", {}, h("figcaption", { title: cell.c.name }, cell.c.name), box);
    }));
    draw();
  }

  function draw() {
    if (!grid.isConnected || !cells.length) return;
    const width = cells[0].canvas.parentElement?.clientWidth ?? 0;
    if (width < 50) return;
    for (const cell of cells) one(cell, width);
    const withModel = cells.some(({ c }) => s.slices.has(c.name));
    note.replaceChildren(h("span", { class: "key dot" }), "trials", ...(s.broken() ? [h("span", { class: "key dot broken" }), "trials that break a constraint"] : []),
      ...(withModel ? [h("span", { class: "key line" }), "mean of the model ± 2 sd through the recommended configuration, which the dashed line marks"] : [` · ${s.noModel()}`]));
  }

  function one(/** @type {any} */ cell, /** @type {number} */ width) {
    const { c, canvas, drawn } = cell;
    const values = s.values();
    const f = frame(canvas, { width, height, small: true, x: { title: "", ticks: c.axis.labels ? c.axis.labels.map((/** @type {string} */ label, /** @type {number} */ k) => ({ label, u: (k + 0.5) / c.axis.labels.length })) : c.axis.ticks }, y: { title: "", ticks: sc.ticks } });
    const { g, X } = f;
    const V = (/** @type {number} */ v) => f.Y(Math.max(-0.02, Math.min(1.02, sc.u(sc.log ? Math.max(v, sc.low * 1e-3) : v))));
    cell.place = (/** @type {number} */ i) => (values[i] === values[i] && drawn[i] !== INACTIVE ? [X(drawn[i] / TOP), V(values[i])] : null);
    for (const broken of s.broken() ? [true, false] : [false]) {
      f.dots((put) => {
        for (let i = 0; i < values.length; i++) {
          if (values[i] === values[i] && drawn[i] !== INACTIVE && s.breaks(i) === broken) put(drawn[i] / TOP, sc.u(values[i]));
        }
      }, broken ? s.broken() : s.ranked().sorted.length, broken ? "--muted" : "--accent");
    }
    const m = s.slices.get(c.name);
    if (!m) return;
    const [low, high] = [-2, 2].map((k) => m.mean.map((/** @type {number} */ v, /** @type {number} */ j) => v + k * m.sd[j]));
    g.fillStyle = css("--band");
    g.strokeStyle = css("--best");
    g.lineWidth = 2;
    if (c.axis.kind === "categorical" || c.axis.kind === "ordinal") { // values with nothing between them
      const half = Math.min(18, (0.35 * f.w) / m.u.length);
      m.u.forEach((/** @type {number} */ u, /** @type {number} */ j) => {
        g.fillRect(X(u) - half, V(high[j]), 2 * half, V(low[j]) - V(high[j]));
        line(g, [[X(u) - half, V(m.mean[j])], [X(u) + half, V(m.mean[j])]]);
      });
    } else {
      g.beginPath();
      m.u.forEach((/** @type {number} */ u, /** @type {number} */ j) => g.lineTo(X(u), V(high[j])));
      for (let j = m.u.length - 1; j >= 0; j--) g.lineTo(X(m.u[j]), V(low[j]));
      g.fill();
      line(g, m.u.map((/** @type {number} */ u, /** @type {number} */ j) => [X(u), V(m.mean[j])]));
    }
    if (!(m.at >= 0)) return;
    g.setLineDash([4, 3]);
    g.lineWidth = 1;
    g.strokeStyle = css("--fg");
    line(g, [[X(m.at), f.Y(0)], [X(m.at), f.Y(1)]]);
    g.setLineDash([]);
  }

  onScheme(draw, signal);
  onWidth(grid, draw, signal);
  const element = figure({
    title: `${s.objective().name} over each parameter`, name: `${s.name}-slices`, wide: true, cli: `tuner plot ${quote(s.name)} --only slices`, tools: [more],
    body: h("div", {}, grid, note),
    rows: () => [["parameter", "value", "mean", "standard deviation"],
      ...[...s.slices.values()].flatMap((m) => m.u.map((u, j) => [m.name, at(parameters(s.table).find((c) => c.name === m.name)?.axis, u), m.mean[j], m.sd[j]]))],
  });
  return { element, update: make, redraw: draw };
}
