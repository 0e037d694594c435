// @ts-check
// Pictures of many points, as counts for each pixel.

import { rgb } from "./dom.js";

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
