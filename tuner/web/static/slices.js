// @ts-check
// The objective over each parameter. Points are trials. The line is the mean of the model
// through the recommended configuration, and the band two standard deviations around it.

import { APIError, call, offline } from "./api.js";
import { count, css, h, onScheme, onWidth, quote, rgb } from "./dom.js";
import { at, INACTIVE, jittered, parameters, scale, TOP } from "./columns.js";
import { figure } from "./figure.js";
import { lineChart } from "./lines.js";
import { board, frame, line, tips } from "./plot.js";

const height = 190;
const fewest = 12; // parameters that are drawn unasked

/** through names the configuration that the model is cut through. */
const through = (/** @type {import("./study.js").Study} */ s) => (s.info.spec.objectives.length > 1 ? `trial ${count(s.recommended)}, the first of the front by the model` : "the recommended configuration");

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
      ...(withModel ? [h("span", { class: "key line" }), `mean of the model ± 2 sd through ${through(s)}, which the dashed line marks`] : [` · ${s.noModel()}`]));
  }

  function one(/** @type {any} */ cell, /** @type {number} */ width) {
    const { c, canvas, drawn } = cell;
    const values = s.values();
    const f = frame(canvas, { width, height, small: true, x: { title: "", ticks: c.axis.labels ? c.axis.brief.map((/** @type {string} */ label, /** @type {number} */ k) => ({ label, u: (k + 0.5) / c.axis.labels.length })) : c.axis.ticks }, y: { title: "", ticks: sc.ticks } });
    const { g, X } = f;
    const V = (/** @type {number} */ v) => f.Y(sc.edge(v));
    cell.place = (/** @type {number} */ i) => (values[i] === values[i] && drawn[i] !== INACTIVE ? [X(drawn[i] / TOP), V(values[i])] : null);
    for (const broken of s.broken() ? [true, false] : [false]) {
      f.dots((put) => {
        for (let i = 0; i < values.length; i++) {
          if (values[i] === values[i] && drawn[i] !== INACTIVE && s.breaks(i) === broken) put(drawn[i] / TOP, sc.edge(values[i]));
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

const [cellsEach, levels] = [25, 8];

/**
 * contour shows the mean of the model over two parameters, with all others as in the
 * recommended configuration, and the trials by their rank.
 * @param {import("./study.js").Study} s
 * @param {AbortSignal} signal
 */
export function contour(s, signal) {
  const { box, canvas, draw } = board("The objective over two parameters", paint, signal);
  const note = h("p", { class: "hint" });
  const choice = (/** @type {string} */ label) => h("select", { "aria-label": label, onchange: () => update() });
  const [horizontal, vertical] = [choice("Parameter to the right"), choice("Parameter upwards")];
  let mean = /** @type {number[]|null} */ (null);
  let place = (/** @type {number} */ _) => /** @type {number[]|null} */ (null);
  let asked = "";
  tips(box, s, (i) => place(i));

  const find = (/** @type {string} */ name) => parameters(s.table).find((c) => c.name === name);
  /** wire is the value of a parameter at a coordinate for a call. */
  const wire = (/** @type {any} */ c, /** @type {number} */ u) => {
    const v = at(c.axis, u);
    const declared = s.range(c.name).values?.find((/** @type {any} */ x) => String(x) === String(v));
    if (typeof declared === "boolean") return { boolValue: declared };
    if (typeof declared === "string" || (typeof v === "string" && declared === undefined && c.axis.kind === "categorical")) return { stringValue: v };
    return c.axis.kind === "int" || (declared !== undefined && s.range(c.name).values.every(Number.isInteger)) ? { intValue: String(Math.round(Number(v))) } : { floatValue: Number(v) };
  };
  const steps = (/** @type {any} */ c) => (c.axis.labels ? c.axis.labels.length : cellsEach);
  const unit = (/** @type {any} */ c, /** @type {number} */ k) => (c.axis.labels ? (k + 0.5) / c.axis.labels.length : k / (cellsEach - 1));

  async function update() {
    const order = s.importance();
    const names = parameters(s.table).filter((c) => !c.axis.conditional && (c.axis.labels || c.axis.grid)).sort((a, b) => (order.get(b.name) ?? 0) - (order.get(a.name) ?? 0)).map((c) => c.name);
    element.toggleAttribute("hidden", names.length < 2 || !s.anything());
    if (names.length < 2 || !s.anything()) return;
    [horizontal, vertical].forEach((select, k) => {
      const now = names.includes(select.value) ? select.value : names[k];
      select.replaceChildren(...names.map((n) => h("option", { value: n, selected: n === now }, n)));
      select.value = now;
    });
    draw();
    const [a, b] = [find(horizontal.value), find(vertical.value)];
    const key = `${horizontal.value} ${vertical.value} ${s.asked} ${s.chosen}`;
    if (!a || !b || a.name === b.name || !s.through || key === asked || offline) return;
    asked = key;
    mean = null;
    const configs = [];
    for (let j = 0; j < steps(b); j++) for (let i = 0; i < steps(a); i++) configs.push({ values: { ...s.through, [a.name]: wire(a, unit(a, i)), [b.name]: wire(b, unit(b, j)) } });
    try {
      const p = await call("Predict", { parent: `studies/${s.name}`, configs }, signal);
      mean = (p.configs ?? []).map((/** @type {any} */ q) => Number(q.mean?.[s.chosen] ?? NaN));
    } catch (e) {
      if (!(e instanceof APIError)) throw e; // a condition may forbid some of the configurations
    }
    draw();
  }

  function paint(/** @type {number} */ width) {
    const [a, b] = [find(horizontal.value), find(vertical.value)];
    if (!a || !b) return;
    const ticks = (/** @type {any} */ c) => (c.axis.labels ? c.axis.brief.map((/** @type {string} */ label, /** @type {number} */ k) => ({ label, u: (k + 0.5) / c.axis.labels.length })) : c.axis.ticks);
    const f = frame(canvas, { width, height: 360, x: { title: a.name, ticks: ticks(a) }, y: { title: b.name, ticks: ticks(b) } });
    const known = mean?.length === steps(a) * steps(b) ? mean : null;
    const sign = s.maximize() ? -1 : 1;
    if (known) surface(f, known, a, b, sign);
    const values = s.values();
    const { sorted } = s.ranked();
    const [ua, ub] = [jittered(a, s.table.n), jittered(b, s.table.n)];
    place = (i) => (values[i] === values[i] ? [f.X(ua[i] / TOP), f.Y(ub[i] / TOP)] : null);
    const cut = (/** @type {number} */ q) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * (sign > 0 ? q : 1 - q)))];
    const classes = /** @type {[string, number, string][]} */ ([["the worse half", 1, "--muted"], ["the better half", 0.5, "--accent"], ["the best tenth", 0.1, "--best"]]);
    classes.forEach(([, share, colour], k) => f.dots((put) => {
      const [from, to] = [sign * cut(share), k + 1 < classes.length ? sign * cut(classes[k + 1][1]) : -Infinity];
      for (let i = 0; i < values.length; i++) if (values[i] === values[i] && (share === 1 || sign * values[i] <= from) && sign * values[i] > to) put(ua[i] / TOP, ub[i] / TOP);
    }, sorted.length, colour));
    note.replaceChildren(...classes.flatMap(([text, , colour]) => [h("span", { class: "key dot", style: { "background-color": `var(${colour})` } }), text]), known ? ` · the darker, the better by the mean of the model, with all other parameters as in ${through(s)}` : ` · ${s.modelled() ? "no prediction" : s.noModel()}`);
  }

  /** surface shades cells by their mean, and draws lines of equal means. */
  function surface(/** @type {any} */ f, /** @type {number[]} */ z, /** @type {any} */ a, /** @type {any} */ b, /** @type {number} */ sign) {
    const [n, m] = [steps(a), steps(b)];
    const finite = z.filter(Number.isFinite);
    const [low, high] = [Math.min(...finite), Math.max(...finite)];
    const g = f.g;
    const half = (/** @type {any} */ c, /** @type {number} */ k) => 0.5 / (c.axis.labels ? k : k - 1);
    const [red, green, blue] = rgb("--accent");
    for (let j = 0; j < m; j++) {
      for (let i = 0; i < n; i++) {
        const t = (z[j * n + i] - low) / (high - low || 1);
        const shade = sign > 0 ? 1 - t : t;
        g.fillStyle = `rgb(${red} ${green} ${blue} / ${0.45 * Math.round(shade * levels) / levels})`;
        const [x0, x1] = [f.X(Math.max(0, unit(a, i) - half(a, n))), f.X(Math.min(1, unit(a, i) + half(a, n)))];
        const [y0, y1] = [f.Y(Math.min(1, unit(b, j) + half(b, m))), f.Y(Math.max(0, unit(b, j) - half(b, m)))];
        g.fillRect(Math.round(x0), Math.round(y0), Math.round(x1) - Math.round(x0), Math.round(y1) - Math.round(y0));
      }
    }
  }

  const element = figure({
    title: "Two parameters", name: `${s.name}-contour`, wide: true, cli: `tuner trials ${quote(s.name)} -f csv`, canvas: () => canvas,
    tools: [h("label", {}, "→ ", horizontal), h("label", {}, "↑ ", vertical)], body: h("div", {}, box, note),
    rows: () => {
      const [a, b] = [find(horizontal.value), find(vertical.value)];
      return [[horizontal.value, vertical.value, "mean"], ...(mean ?? []).map((v, k) => [at(a?.axis, unit(a, k % steps(a))), at(b?.axis, unit(b, Math.floor(k / steps(a)))), v])];
    },
  });
  return { element, update };
}

/**
 * distribution shows which share of the trials is at least as good as a value.
 * @param {import("./study.js").Study} s
 * @param {AbortSignal} signal
 */
export function distribution(s, signal) {
  const chart = lineChart("Share of the trials that are as good", signal, 240);
  const points = () => {
    const sorted = s.maximize() ? [...s.ranked().sorted].reverse() : [...s.ranked().sorted];
    const every = Math.max(1, Math.floor(sorted.length / 400));
    return sorted.map((v, i) => [v, (i + 1) / sorted.length]).filter((_, i) => i % every === 0 || i === sorted.length - 1);
  };
  return {
    element: figure({ title: `Distribution of ${s.objective().name}`, name: `${s.name}-distribution`, wide: true, canvas: chart.canvas, cli: `tuner trials ${quote(s.name)} -f csv`, body: chart.element, rows: () => [[s.objective().name, "share"], ...points()] }),
    update() {
      const list = points().sort((a, b) => a[0] - b[0]);
      chart.draw(list.length ? [{ name: "share", x: list.map((p) => p[0]), y: list.map((p) => p[1]), colour: "--accent", width: 2 }] : [], { maximize: true, log: false, x: s.objective().name, y: "share as good or better" });
    },
  };
}
