// @ts-check
// What each trial came to, and the best so far.

import { count, css, h, number, onScheme, onWidth, quote, trialStateNames, trialURL } from "./dom.js";
import { column, scale, ticks } from "./columns.js";
import { figure } from "./figure.js";
import { titled, wholes } from "./lines.js";
import { points, ratio, tips } from "./plot.js";

const mostMarks = 4000; // trials up to which each one that failed or was pruned is marked

/**
 * history draws a study. It reads again from it when update is called.
 * @param {import("./study.js").Study} s
 * @param {AbortSignal} signal
 */
export function history(s, signal) {
  const box = h("div", { class: "chart history", tabindex: "0", role: "group", "aria-label": "Best so far. Left and right arrows go from trial to trial, Home and End to the ends, Enter opens the trial." });
  const note = h("p", { class: "hint" });
  const readout = h("p", { class: "readout", role: "status" });
  const log = h("input", { type: "checkbox", onchange: () => draw(log.checked) });
  const byTime = h("select", { "aria-label": "Horizontal axis", onchange: async () => {
    if (byTime.value === "time") await s.need(["ended"]);
    draw();
  } }, h("option", { value: "trial" }, "trial"), h("option", { value: "time" }, "time"));
  let plot = /** @type {any} */ (null);
  let cursor = -1;
  let place = (/** @type {number} */ _) => /** @type {number[]|null} */ (null);
  tips(box, s, (i) => place(i), (i) => (cursor = i));

  function draw(/** @type {boolean|undefined} */ wantLog = undefined) {
    if (!box.isConnected) return;
    const values = s.values();
    const contending = s.contending();
    const { sorted } = s.ranked();
    const sc = scale(sorted, s.maximize(), wantLog ?? (log.dataset.set ? log.checked : undefined));
    log.disabled = !(sorted.length && sorted[0] > 0);
    log.checked = sc.log;
    if (wantLog !== undefined) log.dataset.set = "1";
    const n = values.length;
    const time = byTime.value === "time" ? column(s.table, "ended") : null;
    const states = column(s.table, "state");
    const reported = column(s.table, `report/${s.objective().name}`);
    const shownAs = (/** @type {number} */ i) => trialStateNames[states[i]];
    const ended = (/** @type {number} */ i) => n <= mostMarks && ["failed", "infeasible", "pruned"].includes(shownAs(i));
    const marked = (/** @type {string} */ name) => n <= mostMarks && states.includes(trialStateNames.indexOf(name));
    const X = (/** @type {number} */ i) => (time ? time[i] : i);
    const bestX = [];
    const bestY = [];
    const order = time ? Uint32Array.from(values.keys()).filter((i) => time[i] === time[i] && values[i] === values[i]).sort((a, b) => time[a] - time[b]) : null;
    const sign = s.maximize() ? -1 : 1;
    let best = Infinity;
    const total = order ? order.length : n;
    for (let k = 0; k < total; k++) {
      const i = order ? order[k] : k;
      const y = sign * contending[i];
      if (y < best) {
        best = y;
        bestX.push(X(i));
        bestY.push(values[i]);
      }
    }
    const last = order ? (order.length ? X(order[order.length - 1]) : 0) : n - 1;
    const first = order ? (order.length ? X(order[0]) : 0) : 0;
    if (bestX.length && bestX[bestX.length - 1] < last) {
      bestX.push(last);
      bestY.push(bestY[bestY.length - 1]);
    }
    const pad = sc.log ? 0 : 0.03 * (sc.high - sc.low);
    const low = sc.log ? sc.low * 0.92 : sc.low - pad;
    const high = sc.log ? sc.high * 1.08 : sc.high + pad;
    const line = css("--line");
    const fg = css("--muted");
    const axis = { stroke: fg, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui, sans-serif" };
    const side = Math.max(0.5, (last - first) * 0.01);
    const raster = (/** @type {any} */ u) => {
      const { left, top, width, height } = u.bbox;
      const { min, max } = u.scales.x;
      const f = sc.log ? Math.log10 : (/** @type {number} */ v) => v;
      const a = f(u.scales.y.min);
      const kx = (width - 1) / (max - min);
      const ky = (height - 1) / (f(u.scales.y.max) - a);
      const from = time ? 0 : Math.max(0, Math.floor(min));
      const to = time ? n : Math.min(n, Math.ceil(max) + 1);
      const edge = s.maximize() ? height - 1 : 0; // the bad one
      const draw = (/** @type {boolean} */ broken) => points(u.ctx, { left, top, width, height }, (put) => {
        for (let i = from; i < to; i++) {
          const v = values[i];
          if (v !== v || s.breaks(i) !== broken) continue;
          const y = height - 1 - (f(v) - a) * ky;
          put((X(i) - min) * kx, y >= 0 && y < height ? y : edge);
        }
      }, Math.min(to - from, broken ? s.broken() : sorted.length), broken ? "--muted" : "--accent", ratio());
      if (s.broken()) draw(true);
      draw(false);
      const r = ratio();
      const inside = (/** @type {number} */ i) => X(i) >= min && X(i) <= max;
      place = (i) => (values[i] === values[i] && inside(i) ? [(left + (X(i) - min) * kx) / r, (top + Math.max(0, Math.min(height - 1, height - 1 - (f(values[i]) - a) * ky))) / r] : ended(i) && inside(i) ? [(left + (X(i) - min) * kx) / r, mark(i) / r] : null);
      // Trials that ended without a result: pruned ones at their last report, others at the edge.
      const mark = (/** @type {number} */ i) => {
        const v = shownAs(i) === "pruned" ? reported?.[i] ?? NaN : NaN;
        return top + (v === v ? Math.max(3 * r, Math.min(height - 4 * r, height - 1 - (f(v) - a) * ky)) : height - 5 * r);
      };
      u.ctx.lineWidth = 1.2 * r;
      for (let i = from; i < to; i++) {
        if (!ended(i) || !inside(i)) continue;
        const [x, y, d] = [left + (X(i) - min) * kx, mark(i), 3 * r];
        u.ctx.strokeStyle = css(shownAs(i) === "pruned" ? "--muted" : "--best");
        u.ctx.beginPath();
        u.ctx.moveTo(x - d, y - d);
        u.ctx.lineTo(x + d, y + d);
        u.ctx.moveTo(x - d, y + d);
        u.ctx.lineTo(x + d, y - d);
        u.ctx.stroke();
      }
    };
    const options = {
      width: box.clientWidth, height: box.clientHeight,
      scales: { x: { time: Boolean(time), range: (/** @type {any} */ _, /** @type {number} */ a, /** @type {number} */ b) => (a === bestX[0] && b === last ? [first - side, last + side] : [a, b]) }, y: { distr: sc.log ? 3 : 1, range: () => [low, high] } },
      axes: [{ ...axis, ...titled(time ? "end of the trial" : "trial"), size: time ? 44 : 30, ...(!time && { incrs: wholes }), values: time ? undefined : (/** @type {any} */ _, /** @type {number[]} */ v) => v.map((x) => (Number.isInteger(x) ? count(x) : "")) },
        { ...axis, ...titled(s.objective().name, box.clientHeight - 60), size: 56, splits: () => ticks(low, high, sc.log), values: (/** @type {any} */ _, /** @type {number[]} */ v) => v.map((x) => (x === null ? "" : number(x, 3))) }],
      cursor: { points: { show: false }, y: false },
      legend: { show: false },
      hooks: { drawAxes: [raster] },
      series: [{}, { label: "best so far", stroke: css("--best"), width: 2, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) }],
    };
    plot?.destroy();
    box.replaceChildren();
    if (!sorted.length) {
      plot = null;
      box.append(h("p", { class: "empty" }, "No trial has completed yet. The chart begins with the first result."));
      note.textContent = "";
      return;
    }
    plot = new uPlot(options, [bestX, bestY], box);
    for (const c of box.querySelectorAll("canvas")) c.setAttribute("aria-hidden", "true");
    note.replaceChildren(...[
      h("span", { class: "key dot" }), n > 4000 ? "density of trials" : "a trial",
      s.broken() ? [h("span", { class: "key dot broken" }), "it breaks a constraint"] : "",
      h("span", { class: "key line" }), "best so far",
      marked("pruned") ? [h("span", { class: "key mark muted" }, "✕"), "pruned, at its last report"] : "",
      marked("failed") || marked("infeasible") ? [h("span", { class: "key mark" }, "✕"), "failed"] : "",
      n > 300 ? " · drag to zoom, double-click to see all" : "",
      sc.left ? ` · ${count(sc.left)} far values lie at the ${s.maximize() ? "lower" : "upper"} edge` : ""].flat());
  }

  /** say reads out a trial. */
  function say(/** @type {number} */ i) {
    const values = s.values();
    if (!(i >= 0 && i < values.length)) return;
    cursor = i;
    readout.replaceChildren(h("a", { href: trialURL(s.name, i) }, `#${count(i)}`), ` ${s.objective().name} ${number(values[i], 6)}`, values[i] !== values[i] || s.breaks(i) ? ` (${s.stateOf(i)})` : "");
  }

  box.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
    const n = s.values().length;
    const step = e.shiftKey ? Math.max(1, Math.round(n / 50)) : 1;
    if (e.key === "Enter" && cursor >= 0) location.assign(trialURL(s.name, cursor));
    const to = { ArrowLeft: Math.max(0, cursor - step), ArrowRight: Math.min(n - 1, cursor + step), Home: 0, End: n - 1 }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    say(to);
    if (plot && byTime.value === "trial") plot.setCursor({ left: plot.valToPos(to, "x"), top: 10 }, false);
  });
  onScheme(() => draw(), signal);
  onWidth(box, () => draw(), signal, true);
  signal.addEventListener("abort", () => plot?.destroy());

  const element = figure({
    title: "Best so far", name: `${s.name}-history`, wide: true,
    cli: `tuner plot ${quote(s.name)} --only history`,
    tools: [h("label", {}, log, " log"), h("label", {}, "x ", byTime)],
    body: [box, readout, note],
    canvas: () => box.querySelector("canvas"),
    rows: () => {
      const sign = s.maximize() ? -1 : 1;
      const contending = s.contending();
      let best = NaN;
      return [["trial", "state", s.objective().name, "best so far"], ...Array.from(s.values(), (v, i) => {
        if (contending[i] === contending[i] && !(sign * v >= sign * best)) best = v;
        return [i, s.stateOf(i), v, best];
      })];
    },
  });
  return { element, update: async () => {
    if (Number(s.info.pruned ?? 0) && s.table.n <= mostMarks) await s.need(["report/"]);
    draw();
  } };
}
