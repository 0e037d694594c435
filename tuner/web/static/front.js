// @ts-check
// Two objectives against each other, with the trials that no other one beats in both.

import { count, css, h, number, onScheme, onWidth, trialURL } from "./dom.js";
import { ranks, scale } from "./columns.js";
import { figure } from "./figure.js";
import { points, ratio, sized } from "./raster.js";

const height = 380;
const margin = { left: 58, right: 14, top: 10, bottom: 40 };

/** pareto lists the trials that none beats in both columns, in order of the first, and all of equal ones. */
export function pareto(/** @type {Float64Array} */ a, /** @type {Float64Array} */ b, /** @type {number} */ signA, /** @type {number} */ signB) {
  const order = [];
  for (let i = 0; i < a.length; i++) if (a[i] === a[i] && b[i] === b[i]) order.push(i);
  order.sort((i, j) => signA * (a[i] - a[j]) || signB * (b[i] - b[j]));
  const front = [];
  let best = Infinity;
  for (const i of order) {
    const last = front[front.length - 1];
    if (signB * b[i] < best || (a[i] === a[last] && b[i] === b[last])) {
      best = signB * b[i];
      front.push(i);
    }
  }
  return front;
}

/**
 * front shows pairs of objectives.
 * @param {import("./study.js").Study} s
 * @param {AbortSignal} signal
 */
export function front(s, signal) {
  const canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { role: "img", "aria-label": "Two objectives against each other" }));
  const box = h("div", { class: "chart" }, canvas);
  const status = h("p", { class: "readout", role: "status" });
  const list = h("p", { class: "hint" });
  const all = () => s.info.spec.objectives;
  const choice = (/** @type {string} */ label, /** @type {number} */ k) => h("select", { "aria-label": label, onchange: () => draw() }, (s.info.spec?.objectives ?? []).map((/** @type {any} */ o, /** @type {number} */ i) => h("option", { selected: i === k }, o.name)));
  const horizontal = choice("Objective to the right", 0);
  const vertical = choice("Objective upwards", 1);
  const sign = (/** @type {number} */ k) => (all()[k].direction === "DIRECTION_MAXIMIZE" ? -1 : 1);

  function selected() {
    const [i, k] = [horizontal.selectedIndex, vertical.selectedIndex];
    return { i, k, a: s.values(i), b: s.values(k), best: pareto(s.contending(i), s.contending(k), sign(i), sign(k)) };
  }

  function draw() {
    const width = box.clientWidth;
    if (!box.isConnected || width < 50) return;
    const { i, k, a, b, best } = selected();
    const [, g] = sized(canvas, width, height);
    const [sx, sy] = [scale(ranks(a, sign(i) < 0).sorted, sign(i) < 0), scale(ranks(b, sign(k) < 0).sorted, sign(k) < 0)];
    const [w, hh] = [width - margin.left - margin.right, height - margin.top - margin.bottom];
    const X = (/** @type {number} */ v) => margin.left + w * sx.u(v);
    const Y = (/** @type {number} */ v) => margin.top + hh * (1 - sy.u(v));
    g.font = "12px system-ui, sans-serif";
    g.fillStyle = css("--muted");
    g.strokeStyle = css("--line");
    g.textBaseline = "middle";
    g.textAlign = "right";
    for (const t of sy.ticks) {
      const y = Math.round(margin.top + hh * (1 - t.u)) + 0.5;
      g.strokeRect(margin.left, y, w, 0);
      g.fillText(t.label, margin.left - 6, y);
    }
    g.textAlign = "center";
    for (const t of sx.ticks) {
      const x = Math.round(margin.left + w * t.u) + 0.5;
      g.strokeRect(x, margin.top, 0, hh);
      g.fillText(t.label, x, height - margin.bottom + 12);
    }
    g.fillText(`${all()[i].name} →`, margin.left + w / 2, height - 8);
    g.textAlign = "left";
    g.fillText(`↑ ${all()[k].name}`, margin.left + 6, margin.top + 8);
    const r = ratio();
    let both = 0;
    for (let n = 0; n < a.length; n++) if (a[n] === a[n] && b[n] === b[n]) both++;
    g.save();
    g.setTransform(1, 0, 0, 1, 0, 0);
    const dots = (/** @type {boolean} */ broken) => points(g, { left: margin.left * r, top: margin.top * r, width: w * r, height: hh * r }, (put) => {
      for (let n = 0; n < a.length; n++) {
        if (s.breaks(n) !== broken) continue;
        const [u, v] = [sx.u(a[n]), sy.u(b[n])];
        if (u >= 0 && u <= 1 && v >= 0 && v <= 1) put(u * (w * r - 1), (1 - v) * (hh * r - 1));
      }
    }, broken ? s.broken() : both, broken ? "--muted" : "--accent", r);
    if (s.broken()) dots(true);
    dots(false);
    g.restore();
    g.strokeStyle = g.fillStyle = css("--best");
    g.lineWidth = 1.5;
    g.beginPath();
    best.forEach((n, j) => {
      if (j) g.lineTo(X(a[n]), Y(b[best[j - 1]])); // up to the next, nothing is known to be better
      g.lineTo(X(a[n]), Y(b[n]));
    });
    g.stroke();
    for (const n of best) {
      g.beginPath();
      g.arc(X(a[n]), Y(b[n]), 4, 0, 2 * Math.PI);
      g.fill();
    }
    status.textContent = `${count(best.length)} of ${count(both)} completed trials are on the front of ${all()[i].name} and ${all()[k].name}${s.broken() ? `, and ${count(s.broken())} ${s.broken() === 1 ? "breaks" : "break"} a constraint` : ""}`;
    list.replaceChildren(...best.slice(0, 40).flatMap((n, j) => [j ? " · " : "", h("a", { href: trialURL(s.name, n) }, `#${n}`), ` ${number(a[n], 4)}, ${number(b[n], 4)}`]), best.length > 40 ? " · the table has all" : "");
  }

  onScheme(draw, signal);
  onWidth(box, draw, signal);
  const element = figure({
    title: "Pareto front", name: `${s.name}-front`, wide: true, cli: `tuner best ${s.name}`, canvas: () => canvas,
    tools: [h("label", {}, "→ ", horizontal), h("label", {}, "↑ ", vertical)],
    hint: "A trial is on the front if no other one is better in one objective and not worse in the other.",
    body: h("div", {}, box, status, list),
    rows: () => {
      const { i, k, a, b, best } = selected();
      return [["trial", all()[i].name, all()[k].name], ...best.map((n) => [n, a[n], b[n]])];
    },
  });
  return { element, update: draw };
}
