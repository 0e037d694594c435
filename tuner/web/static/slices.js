// @ts-check
// The objective over each parameter. Points are trials. The line is the mean of the model
// through the recommended configuration, and the band two standard deviations around it.

import { css, h, onScheme, onWidth } from "./dom.js";
import { at, INACTIVE, jittered, parameters, scale, TOP } from "./columns.js";
import { figure } from "./figure.js";
import { points, ratio, sized } from "./raster.js";

const height = 190;
const margin = { left: 46, right: 10, top: 8, bottom: 22 };
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
  let cells = /** @type {{c: any, canvas: HTMLCanvasElement, drawn: any}[]} */ ([]);
  let sc = scale(new Float64Array(0), false);

  function make() {
    sc = scale(s.ranked().sorted, s.maximize());
    const order = s.importance();
    const list = parameters(s.table).sort((a, b) => (order.get(b.name) ?? 0) - (order.get(a.name) ?? 0));
    more.hidden = all || list.length <= fewest;
    more.textContent = `All ${list.length} parameters`;
    cells = list.slice(0, all ? list.length : fewest).map((c) => ({ c, drawn: jittered(c, s.table.n), canvas: h("canvas", { role: "img", "aria-label": `${s.objective().name} over ${c.name}` }) }));
    grid.replaceChildren(...cells.map(({ c, canvas }) => h("figure", {}, h("figcaption", {}, c.name), canvas)));
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

  function one(/** @type {any} */ { c, canvas, drawn }, /** @type {number} */ width) {
    const [, g] = sized(canvas, width, height);
    const values = s.values();
    const w = width - margin.left - margin.right;
    const hh = height - margin.top - margin.bottom;
    const X = (/** @type {number} */ u) => margin.left + u * w;
    const Y = (/** @type {number} */ v) => margin.top + hh * (1 - Math.max(-0.02, Math.min(1.02, sc.u(sc.log ? Math.max(v, sc.low * 1e-3) : v))));
    const line = css("--line");
    const muted = css("--muted");
    g.font = "11px system-ui, sans-serif";
    g.lineWidth = 1;
    g.fillStyle = muted;
    g.textBaseline = "middle";
    g.textAlign = "right";
    for (const t of sc.ticks) {
      const y = Math.round(margin.top + hh * (1 - t.u)) + 0.5;
      g.strokeStyle = line;
      g.beginPath();
      g.moveTo(margin.left, y);
      g.lineTo(width - margin.right, y);
      g.stroke();
      g.fillText(t.label, margin.left - 5, y);
    }
    g.textAlign = "center";
    g.textBaseline = "top";
    let end = -Infinity;
    for (const t of c.axis.ticks) {
      const half = g.measureText(t.label).width / 2;
      const x = Math.max(margin.left - 8 + half, Math.min(width - half - 1, X(t.u)));
      if (x - half < end + 6) continue;
      end = x + half;
      g.fillText(t.label, x, height - margin.bottom + 6);
    }
    const r = ratio();
    const finished = s.ranked().sorted.length;
    g.save();
    g.setTransform(1, 0, 0, 1, 0, 0);
    const ww = w * r;
    const wh = hh * r;
    const dots = (/** @type {boolean} */ broken) => points(g, { left: margin.left * r, top: margin.top * r, width: ww, height: wh }, (put) => {
      for (let i = 0; i < values.length; i++) {
        const v = values[i];
        if (v !== v || drawn[i] === INACTIVE || s.breaks(i) !== broken) continue;
        const u = sc.u(v);
        if (u >= 0 && u <= 1) put((drawn[i] / TOP) * (ww - 1), (1 - u) * (wh - 1));
      }
    }, broken ? s.broken() : finished, broken ? "--muted" : "--accent", r);
    if (s.broken()) dots(true);
    dots(false);
    g.restore();
    const m = s.slices.get(c.name);
    if (!m) return;
    g.fillStyle = css("--band");
    g.beginPath();
    m.u.forEach((u, j) => g.lineTo(X(u), Y(m.mean[j] + 2 * m.sd[j])));
    for (let j = m.u.length - 1; j >= 0; j--) g.lineTo(X(m.u[j]), Y(m.mean[j] - 2 * m.sd[j]));
    g.fill();
    g.strokeStyle = css("--best");
    g.lineWidth = 2;
    g.beginPath();
    m.u.forEach((u, j) => g.lineTo(X(u), Y(m.mean[j])));
    g.stroke();
    if (m.at >= 0) {
      g.setLineDash([4, 3]);
      g.lineWidth = 1;
      g.strokeStyle = css("--fg");
      g.beginPath();
      g.moveTo(X(m.at), margin.top);
      g.lineTo(X(m.at), margin.top + hh);
      g.stroke();
      g.setLineDash([]);
    }
  }

  onScheme(draw, signal);
  onWidth(grid, draw, signal);
  const element = figure({
    title: "What the model believes", name: `${s.name}-slices`, wide: true, cli: `tuner plot ${s.name} --only slices`, tools: [more],
    body: h("div", {}, grid, note),
    rows: () => [["parameter", "value", "mean", "standard deviation"],
      ...[...s.slices.values()].flatMap((m) => m.u.map((u, j) => [m.name, at(parameters(s.table).find((c) => c.name === m.name)?.axis, u), m.mean[j], m.sd[j]]))],
  });
  return { element, update: make, redraw: draw };
}
