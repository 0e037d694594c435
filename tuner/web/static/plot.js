// @ts-check
// Charts on a canvas: points as counts for each pixel, axes with titles, and the trial under
// the pointer.

import { count, css, duration, exactly, h, number, onScheme, onWidth, rgb, trialURL } from "./dom.js";
import { marks, ticks } from "./columns.js";

const reach = 24; // pixels from the pointer within which a trial is under it
const shownParameters = 12;
const inset = 5; // pixels between the ends of a scale and the frame

/**
 * board is a canvas in a box. It is drawn at each width and in each scheme, until the signal.
 * @param {string} label
 * @param {(width: number) => void} paint
 * @param {AbortSignal} signal
 * @param {Record<string, any>} props of the box
 */
export function board(label, paint, signal, props = {}) {
  const canvas = /** @type {HTMLCanvasElement} */ (h("canvas", props.role ? { "aria-hidden": "true" } : { role: "img", "aria-label": label }));
  const box = /** @type {HTMLElement} */ (h("div", { class: "chart", ...props }, canvas));
  const draw = () => box.isConnected && box.clientWidth >= 50 && paint(box.clientWidth);
  onScheme(draw, signal);
  onWidth(box, draw, signal);
  return { box, canvas, draw };
}

/** span is the scale of an axis to the right, with marks at whole numbers alone where others mean nothing. */
export function span(/** @type {number} */ low, /** @type {number} */ high, whole = false) {
  if (!(high > low)) [low, high] = [low - 0.5, low + 0.5];
  const u = (/** @type {number} */ v) => (v - low) / (high - low);
  const all = marks(ticks(low, high, false).filter((x) => !whole || Number.isInteger(x)));
  return { low, high, u, v: (/** @type {number} */ x) => low + x * (high - low), ticks: all.map((m) => ({ u: u(m.x), label: whole ? count(m.x) : m.label })) };
}

/** moments is a span of times in seconds since 1970. */
export function moments(/** @type {number} */ low, /** @type {number} */ high) {
  const s = span(low, high);
  const form = /** @type {any} */ ({ hour: "2-digit", minute: "2-digit", hour12: false, ...(high - low > 86400 && { month: "short", day: "numeric" }) });
  return { ...s, ticks: [0, 0.25, 0.5, 0.75, 1].map((u) => ({ u, label: new Date(s.v(u) * 1000).toLocaleTimeString("en", form) })) };
}

/**
 * frame draws the axes of a chart. Coordinates are in [0, 1].
 * @param {HTMLCanvasElement} canvas
 * @param {{width: number, height: number, x: Axis, y: Axis, small?: boolean}} f
 * @typedef {{title: string, ticks: {u: number, label: string}[], whole?: boolean}} Axis
 *   whole labels are left out rather than cut
 */
export function frame(canvas, { width, height, x, y, small }) {
  const [, g] = sized(canvas, width, height);
  g.font = `${small ? 11 : 12}px system-ui, sans-serif`;
  const widest = Math.max(0, ...y.ticks.map((t) => g.measureText(cut(g, t.label, 0.3 * width)).width));
  const m = { left: Math.ceil(widest) + (y.title ? 28 : 12), right: 14, top: 10, bottom: x.title ? 38 : 22 };
  const [w, hh] = [width - m.left - m.right, height - m.top - m.bottom];
  const X = (/** @type {number} */ u) => m.left + inset + (w - 2 * inset) * u;
  const Y = (/** @type {number} */ u) => m.top + inset + (hh - 2 * inset) * (1 - u);
  g.fillStyle = css("--muted");
  g.strokeStyle = css("--line");
  g.lineWidth = 1;
  g.textBaseline = "middle";
  g.textAlign = "right";
  for (const t of y.ticks) {
    const at = Math.round(Y(t.u)) + 0.5;
    line(g, [[m.left, at], [m.left + w, at]]);
    g.fillText(cut(g, t.label, 0.3 * width), m.left - 6, at);
  }
  g.textAlign = "center";
  const each = x.ticks.length ? (w - 2 * inset) / x.ticks.length - 6 : w;
  let end = -Infinity;
  for (const t of x.ticks) {
    const at = Math.round(X(t.u)) + 0.5;
    line(g, [[at, m.top], [at, m.top + hh]]);
    const label = x.whole ? t.label : cut(g, t.label, Math.max(each, 34));
    const half = g.measureText(label).width / 2;
    const middle = Math.max(half, Math.min(width - half - 1, at));
    if (middle - half < end + 5) continue;
    end = middle + half;
    g.fillText(label, middle, height - m.bottom + 11);
  }
  if (x.title) g.fillText(cut(g, x.title, w), m.left + w / 2, height - 8);
  if (y.title) {
    g.save();
    g.translate(9, m.top + hh / 2);
    g.rotate(-Math.PI / 2);
    g.fillText(cut(g, y.title, hh), 0, 0);
    g.restore();
  }
  /** dots draws points, by their density where there are many. */
  const dots = (/** @type {(put: (u: number, v: number) => void) => void} */ list, /** @type {number} */ n, /** @type {string} */ colour) => {
    const r = ratio();
    g.save();
    g.setTransform(1, 0, 0, 1, 0, 0);
    const [wide, high] = [(w - 2 * inset) * r, (hh - 2 * inset) * r];
    points(g, { left: (m.left + inset) * r, top: (m.top + inset) * r, width: wide, height: high }, (put) => list((u, v) => {
      if (u >= 0 && u <= 1 && v >= 0 && v <= 1) put(u * (wide - 1), (1 - v) * (high - 1));
    }), n, colour, r);
    g.restore();
  };
  /** within draws what ends at the frame. */
  const within = (/** @type {() => void} */ paint) => {
    g.save();
    g.beginPath();
    g.rect(m.left - 2, m.top - 3, w + 4, hh + 6);
    g.clip();
    paint();
    g.restore();
  };
  return { g, X, Y, U: (/** @type {number} */ x) => (x - m.left - inset) / (w - 2 * inset), w, hh, dots, within };
}

/** cut shortens a label to a width, in its middle, because names often differ at the end. */
export function cut(/** @type {CanvasRenderingContext2D} */ g, /** @type {string} */ s, /** @type {number} */ width) {
  if (g.measureText(s).width <= width) return s;
  let keep = s.length - 1;
  const short = () => `${s.slice(0, Math.ceil(keep / 2))}…${s.slice(s.length - Math.floor(keep / 2))}`;
  while (keep > 2 && g.measureText(short()).width > width) keep--;
  return short();
}

/** line draws through points. */
export function line(/** @type {CanvasRenderingContext2D} */ g, /** @type {number[][]} */ list) {
  g.beginPath();
  for (const [x, y] of list) g.lineTo(x, y);
  g.stroke();
}

/**
 * tips shows the trial that is under the pointer beside it, and opens it with a click.
 * @param {HTMLElement} box that holds the chart
 * @param {import("./study.js").Study} s
 * @param {(i: number, x: number, y: number) => number[]|null} place where a trial is in the box, of which the pointer is at x and y, null if nowhere
 * @param {(i: number) => void} [say] hears of it
 */
export function tips(box, s, place, say) {
  const tip = h("div", { class: "tip", hidden: true });
  let [near, from] = [-1, [0, 0]];
  const hide = () => {
    near = -1;
    tip.hidden = true;
    box.style.cursor = "";
  };
  box.addEventListener("pointermove", (e) => {
    const r = box.getBoundingClientRect();
    const [x, y] = [e.clientX - r.left, e.clientY - r.top];
    let [best, least] = [-1, reach * reach];
    for (let i = 0; i < s.table.n; i++) {
      const p = place(i, x, y);
      if (!p) continue;
      const d = (p[0] - x) ** 2 + (p[1] - y) ** 2;
      if (d < least) [best, least] = [i, d];
    }
    if (best < 0) return hide();
    if (best === near) return;
    near = best;
    box.style.cursor = "pointer";
    if (!tip.isConnected) box.append(tip);
    const p = /** @type {number[]} */ (place(best, x, y));
    fill(best, p, r);
    say?.(best);
  });
  box.addEventListener("pointerleave", hide);
  box.addEventListener("pointerdown", (e) => (from = [e.clientX, e.clientY]));
  box.addEventListener("click", (e) => {
    if (near >= 0 && Math.hypot(e.clientX - from[0], e.clientY - from[1]) < 4) location.assign(trialURL(s.name, near));
  });

  async function fill(/** @type {number} */ i, /** @type {number[]} */ p, /** @type {DOMRect} */ r) {
    const values = s.info.spec.objectives.map((/** @type {any} */ o, /** @type {number} */ k) => [o.name, number(s.values(k)[i], 6)]);
    const show = (/** @type {any[][]} */ rows) => {
      tip.replaceChildren(h("strong", {}, `trial ${i}`), ` ${s.stateOf(i)}`, h("dl", {}, rows.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v)))));
      tip.hidden = false;
      const left = p[0] + 14 + tip.offsetWidth > r.width ? p[0] - 14 - tip.offsetWidth : p[0] + 14;
      tip.style.left = `${Math.max(0, left)}px`;
      tip.style.top = `${Math.max(0, Math.min(r.height - tip.offsetHeight, p[1] - tip.offsetHeight / 2))}px`;
    };
    show(values);
    await new Promise((f) => setTimeout(f, 80)); // until the pointer rests
    if (near !== i) return;
    const t = await s.trial(i).catch(() => null);
    if (near !== i || !t) return;
    const more = t.config.length - shownParameters;
    show([...values.map((/** @type {any[]} */ [k], /** @type {number} */ j) => [k, number(t.values[j], 6)]), ...t.others.map(([k, v]) => [k, number(v)]), ...t.config.slice(0, shownParameters).map(([k, v]) => [k, exactly(v)]), ...(more > 0 ? [["", `and ${more} more`]] : []), ...(t.seconds >= 0 ? [["took", duration(t.seconds)]] : [])]);
  }
}

/** ratio is how many pixels of a canvas make one of the page. */
export const ratio = () => Math.min(2, devicePixelRatio || 1);

/**
 * canvas makes a canvas of a size in pixels of the page, and a context that draws in them.
 * @returns {[HTMLCanvasElement, CanvasRenderingContext2D]}
 */
export function sized(/** @type {HTMLCanvasElement} */ canvas, /** @type {number} */ width, /** @type {number} */ height) {
  const r = ratio();
  canvas.width = Math.round(width * r);
  canvas.height = Math.round(height * r);
  canvas.style.setProperty("width", `${width}px`);
  canvas.style.setProperty("height", `${height}px`);
  const g = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  g.setTransform(r, 0, 0, r, 0, 0);
  return [canvas, g];
}

/**
 * points draws a point for each call of put, by its density where there are many.
 * @param {CanvasRenderingContext2D} g in pixels of the canvas
 * @param {{left: number, top: number, width: number, height: number}} box
 * @param {(put: (x: number, y: number) => void) => void} each calls put with pixels in the box
 * @param {number} n how many there are about
 * @param {string} colour the name of a colour
 * @param {number} scale pixels of the canvas for one of the page
 */
export function points(g, box, each, n, colour, scale = 1) {
  const W = Math.max(1, Math.round(box.width));
  const H = Math.max(1, Math.round(box.height));
  const [red, green, blue] = rgb(colour);
  if (n <= 4000) {
    g.save();
    g.beginPath();
    g.rect(box.left - 4 * scale, box.top - 4 * scale, W + 8 * scale, H + 8 * scale);
    g.clip();
    g.fillStyle = `rgb(${red} ${green} ${blue} / ${n > 1000 ? 0.35 : 0.6})`;
    const r = (n > 1000 ? 1.6 : n > 300 ? 2.2 : 3) * scale;
    g.beginPath();
    each((x, y) => {
      g.moveTo(box.left + x + r, box.top + y);
      g.arc(box.left + x, box.top + y, r, 0, 2 * Math.PI);
    });
    g.fill();
    g.restore();
    return;
  }
  const counts = new Uint16Array(W * H);
  each((x, y) => {
    x |= 0;
    y |= 0;
    if (x < 0 || y < 0 || x >= W || y >= H) return;
    const k = y * W + x;
    if (counts[k] < 65535) counts[k]++;
  });
  paint(g, counts, W, H, [red, green, blue], 60, 255, box.left, box.top);
}

/** paint draws weights as opacity, on a logarithmic scale between two opacities. */
export function paint(/** @type {CanvasRenderingContext2D} */ g, /** @type {Uint16Array|Float32Array} */ weights, /** @type {number} */ W, /** @type {number} */ H, /** @type {number[]} */ [red, green, blue], /** @type {number} */ floor, /** @type {number} */ top, x = 0, y = 0, width = W, height = H) {
  let most = 0;
  for (let i = 0; i < weights.length; i++) if (weights[i] > most) most = weights[i];
  if (most === 0) return;
  const image = new ImageData(W, H);
  const pixels = new Uint32Array(image.data.buffer);
  const k = (top - floor) / Math.log1p(most);
  const colour = (blue << 16) | (green << 8) | red;
  for (let i = 0; i < weights.length; i++) {
    const w = weights[i];
    if (w > 0) pixels[i] = ((floor + Math.log1p(w) * k) << 24) | colour;
  }
  const layer = new OffscreenCanvas(W, H);
  /** @type {OffscreenCanvasRenderingContext2D} */ (layer.getContext("2d")).putImageData(image, 0, 0);
  g.drawImage(layer, x, y, width, height);
}

/** text writes with a halo in the colour of the card. */
export function text(/** @type {CanvasRenderingContext2D} */ g, /** @type {string} */ s, /** @type {number} */ x, /** @type {number} */ y, /** @type {{fill: string, halo: string}} */ c) {
  g.lineJoin = "round";
  g.lineWidth = 3;
  g.strokeStyle = c.halo;
  g.strokeText(s, x, y);
  g.fillStyle = c.fill;
  g.fillText(s, x, y);
}
