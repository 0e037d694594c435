// @ts-check
// Several lines over one axis, and which of them is near the pointer.

import { count, css, h, number, onScheme, onWidth } from "./dom.js";
import { scale, ticks } from "./columns.js";

/** wholes are the distances of marks on an axis of whole numbers. */
export const wholes = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6, 1e7, 1e8];

/** titled is the title of an axis of uPlot, shortened in its middle to the pixels there are. */
export const titled = (/** @type {string} */ text, room = Infinity) => {
  const most = Math.floor(room / 7);
  const label = text.length <= most ? text : `${text.slice(0, most >> 1)}…${text.slice(1 - ((most + 1) >> 1))}`;
  return label ? { label, labelFont: "12px system-ui, sans-serif", labelSize: 20, labelGap: 0 } : {};
};

/**
 * @typedef {{name: string, href?: string, x: number[], y: number[], colour: string, width?: number, dash?: number[], stepped?: boolean}} Line
 *   x ascends
 */

/** lineChart draws lines until the signal. Left and right arrows go from line to line. */
export function lineChart(/** @type {string} */ label, /** @type {AbortSignal} */ signal, height = 340) {
  const readout = h("p", { class: "readout", role: "status" }, h("span", { class: "muted" }, "Point at a line to read it."));
  const box = h("div", { class: "chart", tabindex: "0", role: "group", "aria-label": `${label}. Left and right arrows go from line to line, Enter opens its page.`, onkeydown: (/** @type {KeyboardEvent} */ e) => {
    if (e.key === "Enter" && lines[near]?.href) location.assign(/** @type {string} */ (lines[near].href));
    const to = { ArrowLeft: near - 1, ArrowRight: near + 1, Home: 0, End: lines.length - 1 }[e.key];
    if (to === undefined || !lines.length) return;
    e.preventDefault();
    near = Math.max(0, Math.min(lines.length - 1, to));
    plot?.setSeries(near + 1, { focus: true });
    say(lines[near].x.length - 1);
  } });
  let plot = /** @type {any} */ (null);
  let lines = /** @type {Line[]} */ ([]);
  let how = /** @type {{maximize: boolean, log?: boolean, whole?: boolean, x: string, y?: string}} */ ({ maximize: false, x: "" });
  let near = -1;

  function say(/** @type {number} */ k) {
    const l = lines[near];
    if (!l) return;
    readout.replaceChildren(l.href ? h("a", { href: l.href }, l.name) : l.name, ` ${number(l.y[k], 6)} at ${how.x} ${number(l.x[k], 6)}`);
  }

  /** draw returns the scale, which is logarithmic where that shows more. */
  function draw(/** @type {Line[]} */ list, /** @type {typeof how} */ options) {
    [lines, how, near] = [list, options, -1];
    return paint();
  }
  function paint() {
    plot?.destroy();
    plot = null;
    box.replaceChildren();
    const sorted = Float64Array.from(lines.flatMap((l) => l.y.filter(Number.isFinite))).sort();
    const sc = scale(sorted, how.maximize, how.log);
    readout.hidden = !sorted.length;
    if (!box.isConnected || !sorted.length) return sc;
    const pad = sc.log ? 0 : 0.03 * (sc.high - sc.low);
    const [low, high] = sc.log ? [sc.low * 0.95, sc.high * 1.05] : [sc.low - pad, sc.high + pad];
    const line = { stroke: css("--line"), width: 1 };
    const axis = { stroke: css("--muted"), grid: line, ticks: line, font: "12px system-ui, sans-serif" };
    plot = new uPlot({
      width: box.clientWidth, height, legend: { show: false }, focus: { alpha: 0.25 },
      cursor: { y: false, focus: { prox: 24 }, points: { show: false } },
      scales: { x: { time: false }, y: { distr: sc.log ? 3 : 1, range: () => [low, high] } },
      axes: [{ ...axis, ...titled(how.x, box.clientWidth - 80), size: 30, space: 70, ...(how.whole && { incrs: wholes }), values: (/** @type {any} */ _, /** @type {number[]} */ v) => v.map((x) => (Number.isInteger(x) ? count(x) : number(x, 3))) },
        { ...axis, ...titled(how.y ?? "", height - 40), size: 56, splits: () => ticks(low, high, sc.log), values: (/** @type {any} */ _, /** @type {number[]} */ v) => v.map((x) => (x === null ? "" : number(x, 3))) }],
      hooks: { setSeries: [(/** @type {any} */ u, /** @type {number|null} */ i) => {
        if (!i) return;
        near = i - 1;
        const at = u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") : Infinity;
        let k = 0;
        while (k + 1 < lines[near].x.length && lines[near].x[k + 1] <= at) k++;
        say(k);
      }] },
      series: [{}, ...lines.map((l) => ({ label: l.name, stroke: css(l.colour), width: l.width ?? 1.5, dash: l.dash, spanGaps: true, points: { show: l.x.length === 1 }, paths: l.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined }))],
    }, uPlot.join(lines.map((l) => [l.x, l.y])), box);
    for (const c of box.querySelectorAll("canvas")) c.setAttribute("aria-hidden", "true");
    return sc;
  }
  onScheme(paint, signal);
  onWidth(box, paint, signal);
  signal.addEventListener("abort", () => plot?.destroy());
  return { element: h("div", {}, box, readout), draw, canvas: () => box.querySelector("canvas") };
}

/** bestSoFar makes a line of the best values, of points in their order. */
export function bestSoFar(/** @type {Iterable<[number, number]>} */ points, /** @type {boolean} */ maximize) {
  const [x, y] = [/** @type {number[]} */ ([]), /** @type {number[]} */ ([])];
  const sign = maximize ? -1 : 1;
  let [best, last] = [Infinity, NaN];
  for (const [at, v] of points) {
    last = at;
    if (!(sign * v < best)) continue;
    best = sign * v;
    if (x[x.length - 1] === at) y[y.length - 1] = v;
    else {
      x.push(at);
      y.push(v);
    }
  }
  if (x.length && last > x[x.length - 1]) {
    x.push(last);
    y.push(y[y.length - 1]);
  }
  return { x, y };
}
