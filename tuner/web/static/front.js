// @ts-check
// Several objectives: each pair with the trials that no other one beats, how much of the
// range they cover as trials come, what they trade, and a table of them.

import { count, css, exactly, h, number, quote, trialURL } from "./dom.js";
import { exact, parameters, ranks, scale } from "./columns.js";
import { figure } from "./figure.js";
import { lineChart } from "./lines.js";
import { board, frame, line, tips } from "./plot.js";

const shownRows = 60;
const [mostLooks, mostOnFront] = [60, 400]; // of the share that the front covers

/** dominates tells whether one trial beats another: nowhere worse, somewhere better. */
const dominates = (/** @type {number[]} */ a, /** @type {number[]} */ b) => a.every((v, k) => v <= b[k]) && a.some((v, k) => v < b[k]);

/** joined adds a point to a front, in which less is better. Equal points stay. */
function joined(/** @type {number[][]} */ front, /** @type {number[]} */ p) {
  return front.some((q) => dominates(q, p)) ? front : [...front.filter((q) => !dominates(p, q)), p];
}

/** pareto lists the trials that none beats, by trial, and all of equal ones. Less is better in each column. */
function pareto(/** @type {Float64Array[]} */ columns) {
  const known = (/** @type {number} */ i) => columns.every((c) => c[i] === c[i]);
  const order = [...columns[0].keys()].filter(known).sort((i, j) => columns.reduce((d, c) => d || c[i] - c[j], 0));
  const front = /** @type {number[]} */ ([]);
  const of = (/** @type {number} */ i) => columns.map((c) => c[i]);
  let least = Infinity; // of the second, which is enough for two
  for (const i of order) {
    const last = front[front.length - 1];
    if (columns.length === 2 ? columns[1][i] < least || (last !== undefined && columns.every((c) => c[i] === c[last])) : !front.some((j) => dominates(of(j), of(i)))) {
      least = columns[1][i];
      front.push(i);
    }
  }
  return front;
}

/** volume is the part of the unit cube that points beat, in which less is better. */
export function volume(/** @type {number[][]} */ front, d = front[0]?.length ?? 0) {
  if (!front.length) return 0;
  if (d === 1) return Math.max(0, 1 - Math.min(...front.map((p) => p[0])));
  const sorted = [...front].sort((a, b) => a[d - 1] - b[d - 1]);
  let sum = 0;
  sorted.forEach((p, i) => {
    const height = (sorted[i + 1]?.[d - 1] ?? 1) - p[d - 1];
    if (height > 0) sum += height * volume(sorted.slice(0, i + 1), d - 1);
  });
  return sum;
}

/** paretoOf lists the trials of a study that none beats, by the first objective. @returns {number[]} */
export const paretoOf = (/** @type {import("./study.js").Study} */ s) => s.once("front", () => pareto(s.info.spec.objectives.map((/** @type {any} */ o, /** @type {number} */ k) => (o.direction === "DIRECTION_MAXIMIZE" ? s.contending(k).map((v) => -v) : s.contending(k)))));

/**
 * front shows a study with several objectives.
 * @param {import("./study.js").Study} s
 * @param {AbortSignal} signal
 */
export function front(s, signal) {
  const all = s.info.spec.objectives.map((/** @type {any} */ o, /** @type {number} */ k) => ({ name: o.name, sign: o.direction === "DIRECTION_MAXIMIZE" ? -1 : 1, k }));
  const pairs = all.flatMap((/** @type {any} */ a, /** @type {number} */ i) => all.slice(i + 1).map((/** @type {any} */ b) => [a, b])).slice(0, 6);
  const best = () => paretoOf(s);

  const status = h("p", { class: "readout", role: "status" });
  const trade = h("p", {});
  const cells = pairs.map(([a, b]) => {
    let place = (/** @type {number} */ _) => /** @type {number[]|null} */ (null);
    const chart = board(`${b.name} over ${a.name}`, (width) => (place = pair(chart.canvas, width, a, b)), signal);
    tips(chart.box, s, (i) => place(i));
    return chart;
  });
  const high = cells.length > 1 ? 260 : 320;
  const covered = lineChart("Hypervolume", signal, high - 30);
  const matrix = h("div", { class: "pairs" }, cells.map((c) => c.box), covered.element);

  function draw() {
    for (const c of cells) c.draw();
    const list = best();
    const n = s.values().reduce((m, v) => m + (v === v ? 1 : 0), 0);
    const far = all.map((/** @type {any} */ o) => [o.name, scaleOf(o).left]).filter(([, k]) => k).map(([k, far]) => `${count(far)} far ${far === 1 ? "value" : "values"} of ${k} at the edge`);
    status.textContent = [`${count(list.length)} of ${count(n)} completed trials are on the front`, ...far, ...(s.broken() ? [`and ${count(s.broken())} ${s.broken() === 1 ? "breaks" : "break"} a constraint`] : [])].join(", ");
    trade.replaceChildren(...trades(list).flatMap((t) => [...t, h("br")]));
    grow();
  }

  /** scaleOf shows the whole front and the better trials. Worse ones, if far, would squeeze them, and lie at the edge. @returns {import("./columns.js").Scale} */
  const scaleOf = (/** @type {any} */ o) => s.once(`front ${o.k}`, () => {
    const { sorted } = ranks(s.values(o.k), o.sign < 0);
    const on = best().map((n) => o.sign * s.values(o.k)[n]);
    const [least, most] = [Math.min(...on), Math.max(...on)];
    const middle = o.sign * sorted[sorted.length >> 1];
    const end = 2 * Math.max(most, middle) - least;
    const kept = sorted.filter((v) => o.sign * v <= end || !on.length);
    return { ...scale(kept, o.sign < 0, undefined, true), left: sorted.length - kept.length };
  });

  /** pair draws a pair of objectives. It returns where trials are. */
  function pair(/** @type {HTMLCanvasElement} */ canvas, /** @type {number} */ width, /** @type {any} */ oa, /** @type {any} */ ob) {
    const [a, b, sx, sy] = [s.values(oa.k), s.values(ob.k), scaleOf(oa), scaleOf(ob)];
    const better = (/** @type {any} */ o) => `${o.name} (${o.sign < 0 ? "more" : "less"} is better)`;
    const f = frame(canvas, { width, height: high, x: { title: better(oa), ticks: sx.ticks }, y: { title: better(ob), ticks: sy.ticks } });
    for (const broken of s.broken() ? [true, false] : [false]) {
      f.dots((put) => {
        for (let n = 0; n < a.length; n++) if (a[n] === a[n] && s.breaks(n) === broken) put(sx.edge(a[n]), sy.edge(b[n]));
      }, broken ? s.broken() : s.ranked().sorted.length, broken ? "--muted" : "--accent");
    }
    const g = f.g;
    g.strokeStyle = g.fillStyle = css("--best");
    g.lineWidth = 1.5;
    const list = best();
    const at = (/** @type {number} */ n) => [f.X(sx.u(a[n])), f.Y(sy.u(b[n]))];
    if (all.length === 2) line(g, list.flatMap((/** @type {number} */ n, /** @type {number} */ j) => (j ? [[at(n)[0], at(list[j - 1])[1]], at(n)] : [at(n)]))); // up to the next, nothing is known to be better
    for (const n of list) {
      g.beginPath();
      g.arc(at(n)[0], at(n)[1], 4, 0, 2 * Math.PI);
      g.fill();
    }
    return (/** @type {number} */ i) => (a[i] === a[i] && b[i] === b[i] ? [f.X(sx.edge(a[i])), f.Y(sy.edge(b[i]))] : null);
  }

  /** trades says what the ends of the front give up for each other. */
  function trades(/** @type {number[]} */ list) {
    if (list.length < 2) return [];
    return pairs.map(([a, b]) => {
      const least = (/** @type {any} */ o) => list.reduce((m, n) => (o.sign * (s.values(o.k)[n] - s.values(o.k)[m]) < 0 ? n : m));
      const [i, j] = [least(a), least(b)];
      const of = (/** @type {any} */ o) => `${o.name} ${number(s.values(o.k)[i], 4)} → ${number(s.values(o.k)[j], 4)}`;
      return i === j ? [h("a", { href: trialURL(s.name, i) }, `Trial ${i}`), ` is best in ${a.name} and ${b.name}.`]
        : ["From ", h("a", { href: trialURL(s.name, i) }, `trial ${i}`), `, the best ${a.name}, to `, h("a", { href: trialURL(s.name, j) }, `trial ${j}`), `, the best ${b.name}: ${of(a)}, ${of(b)}.`];
    });
  }

  /** shares are the parts of the ranges of the objectives, as they are drawn, that the front covered after some trials. */
  function shares() {
    return s.once("shares", () => {
      const columns = all.map((/** @type {any} */ o) => s.contending(o.k).map((v) => o.sign * v));
      const ends = all.map((/** @type {any} */ o) => [scaleOf(o).low, scaleOf(o).high].map((v) => o.sign * v).sort((a, b) => a - b));
      const [x, y] = [/** @type {number[]} */ ([]), /** @type {number[]} */ ([])];
      const every = Math.max(1, Math.floor(s.table.n / mostLooks));
      let points = /** @type {number[][]} */ ([]);
      for (let i = 0; i < s.table.n; i++) {
        const p = columns.map((c, k) => (c[i] - ends[k][0]) / (ends[k][1] - ends[k][0] || 1));
        if (p.every((v) => v < 1)) points = joined(points, p);
        if (points.length > mostOnFront) return { x: [], y: [] };
        if (!points.length || ((i + 1) % every && i < s.table.n - 1)) continue;
        x.push(i);
        y.push(volume(points));
      }
      return { x, y };
    });
  }
  function grow() {
    const l = shares();
    covered.draw(l.x.length ? [{ name: "covered", ...l, colour: "--best", width: 2, stepped: true }] : [], { maximize: true, log: false, x: "trial", y: "hypervolume", whole: true });
  }

  const table = h("div", { class: "table-frame", tabindex: "0", role: "region", "aria-label": "List of the front" });
  async function list() {
    await s.need(["config/"]);
    const { head, rows } = cellsOf();
    table.replaceChildren(h("table", { class: "studies" }, h("caption", { class: "sr" }, "Trials of the front"), h("thead", {}, h("tr", {}, head.map((t, i) => h("th", { scope: "col", class: i ? "num" : "" }, t)))),
      h("tbody", {}, rows.slice(0, shownRows).map((r) => h("tr", {}, r.map((v, i) => (i ? h("td", { class: "num" }, typeof v === "number" ? exactly(v) : v) : h("th", { scope: "row" }, h("a", { href: trialURL(s.name, v) }, `#${count(v)}`)))))))),
    rows.length > shownRows ? h("p", { class: "hint" }, `The first ${shownRows} of ${count(rows.length)}. The CSV has all.`) : "");
  }
  const cellsOf = () => {
    const read = parameters(s.table).map((c) => exact(s.table, c));
    return { head: ["trial", ...all.map((/** @type {any} */ o) => o.name), ...parameters(s.table).map((c) => c.name)], rows: /** @type {any[][]} */ (best().map((/** @type {number} */ n) => [n, ...all.map((/** @type {any} */ o) => s.values(o.k)[n]), ...read.map((f) => f(n))])) };
  };

  const cli = `tuner trials ${quote(s.name)} -f csv`;
  const rows = async () => {
    await s.need(["config/"]);
    const { head, rows } = cellsOf();
    return [head, ...rows];
  };
  const elements = [
    figure({
      title: "Pareto front", name: `${s.name}-front`, wide: true, cli, canvas: () => cells[0].canvas, rows,
      hint: "A trial is on the front if no other one is better in one objective and not worse in the others. The hypervolume is the share of the drawn ranges that the front covers." + (s.modelled() ? " Measured values count here. tuner best compares what the model predicts, so its list may differ." : ""),
      body: h("div", {}, status, matrix, trade),
    }),
    figure({ title: "Trials of the front", name: `${s.name}-front-table`, wide: true, cli, rows, body: table }),
  ];
  return { elements, update: () => {
    draw();
    return list();
  } };
}
