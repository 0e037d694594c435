// @ts-check
// Several lines over one axis, and which of them is near the pointer.

import { css, h, number } from "./dom.js";
import { scale } from "./columns.js";
import { board, frame, span } from "./plot.js";

const reach = 24; // pixels from the pointer within which a line is under it

/**
 * @typedef {{name: string, href?: string, x: number[], y: number[], colour: string, width?: number, dash?: number[], stepped?: boolean}} Line
 *   x ascends
 */

/** trace draws a line through points of a chart, or a dot if there is one. */
export function trace(/** @type {any} */ f, /** @type {Line} */ l, /** @type {(v: number) => number} */ u, /** @type {(v: number) => number} */ v) {
  const { g } = f;
  g.strokeStyle = g.fillStyle = css(l.colour);
  g.lineWidth = l.width ?? 1.5;
  g.setLineDash(l.dash ?? []);
  g.beginPath();
  let last = NaN;
  l.x.forEach((x, i) => {
    if (l.y[i] !== l.y[i]) return;
    const [at, to] = [f.X(u(x)), f.Y(v(l.y[i]))];
    if (l.stepped && last === last) g.lineTo(at, last);
    g.lineTo(at, to);
    last = to;
  });
  g.stroke();
  g.setLineDash([]);
  if (l.x.length !== 1) return;
  g.arc(f.X(u(l.x[0])), last, 3, 0, 2 * Math.PI);
  g.fill();
}

/** lineChart draws lines until the signal. Left and right arrows go from line to line. */
export function lineChart(/** @type {string} */ label, /** @type {AbortSignal} */ signal, height = 340) {
  const readout = h("p", { class: "readout", role: "status" }, h("span", { class: "muted" }, "Point at a line to read it."));
  let lines = /** @type {Line[]} */ ([]);
  let how = /** @type {{maximize: boolean, log?: boolean, whole?: boolean, x: string, y?: string}} */ ({ maximize: false, x: "" });
  let near = -1;
  let sc = scale(new Float64Array(0), false);
  let x = span(0, 1);
  let f = /** @type {any} */ (null);
  const chart = board(label, (width) => {
    if (!lines.length) return;
    const ends = lines.flatMap((l) => [l.x[0], l.x[l.x.length - 1]]);
    x = span(Math.min(...ends), Math.max(...ends), how.whole);
    f = frame(chart.canvas, { width, height, x: { title: how.x, ticks: x.ticks, whole: true }, y: { title: how.y ?? "", ticks: sc.ticks } });
    f.within(() => lines.forEach((l, k) => {
      f.g.globalAlpha = near < 0 || near === k ? 1 : 0.25;
      trace(f, l, x.u, sc.u);
    }));
  }, signal, { tabindex: "0", role: "group", "aria-label": `${label}. Left and right arrows go from line to line, Enter opens its page.`,
    onkeydown: (/** @type {KeyboardEvent} */ e) => {
      if (e.key === "Enter") open();
      const to = { ArrowLeft: near - 1, ArrowRight: near + 1, Home: 0, End: lines.length - 1 }[e.key];
      if (to === undefined || !lines.length) return;
      e.preventDefault();
      focus(Math.max(0, Math.min(lines.length - 1, to)), Infinity);
    },
    onclick: () => open(),
    onpointermove: (/** @type {PointerEvent} */ e) => {
      if (!f) return;
      const r = chart.box.getBoundingClientRect();
      const at = x.v(f.U(e.clientX - r.left));
      const away = lines.map((l) => Math.abs(f.Y(sc.u(l.y[before(l, at)])) - (e.clientY - r.top)));
      const least = Math.min(...away.filter((d) => d < reach));
      focus(away.indexOf(least), at);
    },
    onpointerleave: () => focus(-1, 0) });

  const open = () => lines[near]?.href && location.assign(/** @type {string} */ (lines[near].href));
  /** before is the last point of a line up to a place, or its first. */
  const before = (/** @type {Line} */ l, /** @type {number} */ at) => Math.max(0, l.x.findLastIndex((v) => v <= at));

  /** focus reads out a line at a place, and fades the others. */
  function focus(/** @type {number} */ k, /** @type {number} */ at) {
    const l = lines[k];
    chart.box.style.cursor = l?.href ? "pointer" : "";
    if (k !== near) {
      near = k;
      chart.draw();
    }
    if (!l) return;
    const i = before(l, at);
    readout.replaceChildren(l.href ? h("a", { href: l.href }, l.name) : l.name, ` ${number(l.y[i], 6)} at ${how.x} ${number(l.x[i], 6)}`);
  }

  /** draw returns the scale, which is logarithmic where that shows more. */
  function draw(/** @type {Line[]} */ list, /** @type {typeof how} */ options) {
    [lines, how, near] = [list, options, -1];
    const sorted = Float64Array.from(lines.flatMap((l) => l.y.filter(Number.isFinite))).sort();
    sc = scale(sorted, how.maximize, how.log);
    chart.box.hidden = readout.hidden = !sorted.length;
    chart.draw();
    return sc;
  }
  return { element: h("div", {}, chart.box, readout), draw, canvas: () => (chart.box.hidden ? null : chart.canvas) };
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
