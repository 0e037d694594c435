// @ts-check
// What each trial came to, and the best so far.

import { count, css, h, number, quote, trialStateNames, trialURL } from "./dom.js";
import { column, scale } from "./columns.js";
import { figure } from "./figure.js";
import { bestSoFar, trace } from "./lines.js";
import { board, frame, moments, span, tips } from "./plot.js";

const mostMarks = 4000; // trials up to which each one that failed or was pruned is marked
const height = 320;

/**
 * history draws a study. It reads again from it when update is called.
 * @param {import("./study.js").Study} s
 * @param {AbortSignal} signal
 */
export function history(s, signal) {
  const note = h("p", { class: "hint" });
  const readout = h("p", { class: "readout", role: "status" });
  const log = h("input", { type: "checkbox", onchange: () => {
    log.dataset.set = "1";
    chart.draw();
  } });
  const byTime = h("select", { "aria-label": "Horizontal axis", onchange: async () => {
    if (byTime.value === "time") await s.need(["ended"]);
    show(null);
  } }, h("option", { value: "trial" }, "trial"), h("option", { value: "time" }, "time"));
  let [cursor, steered] = [-1, false]; // the trial read out, and whether by the keyboard
  let zoom = /** @type {[number, number]|null} */ (null);
  let place = (/** @type {number} */ _) => /** @type {number[]|null} */ (null);
  let across = (/** @type {number} */ x) => x; // the value at a pixel

  const chart = board("Best so far", paint, signal, { class: "chart history", tabindex: "0", role: "group", "aria-label": "Best so far. Left and right arrows go from trial to trial, Home and End to the ends, Enter opens the trial.", onkeydown: steer, ondblclick: () => show(null) });
  tips(chart.box, s, (i) => place(i), (i) => ([cursor, steered] = [i, false]));
  zooms(chart.box, (from, to) => show([across(from), across(to)]));

  function show(/** @type {typeof zoom} */ range) {
    zoom = range;
    chart.draw();
  }

  /** mark is the state of a trial that ended without a result, if there are few trials. */
  const mark = (/** @type {number} */ i) => {
    const state = trialStateNames[column(s.table, "state")[i]];
    return s.table.n <= mostMarks && ["failed", "infeasible", "pruned"].includes(state) ? state : "";
  };

  function paint(/** @type {number} */ width) {
    const [values, { sorted }, n] = [s.values(), s.ranked(), s.table.n];
    const reported = column(s.table, `report/${s.objective().name}`) ?? [];
    const pruned = [...Array(n > mostMarks ? 0 : n).keys()].filter((i) => mark(i) === "pruned").map((i) => reported[i]).filter(Number.isFinite);
    const sc = scale(pruned.length ? Float64Array.from([...sorted, ...pruned]).sort() : sorted, s.maximize(), log.dataset.set ? log.checked : undefined);
    log.disabled = !(sorted[0] > 0);
    log.checked = sc.log;
    const time = byTime.value === "time" ? column(s.table, "ended") : null;
    const X = time ? (/** @type {number} */ i) => time[i] : (/** @type {number} */ i) => i;
    const { line, first, last } = s.once(`best ${byTime.value} ${s.chosen}`, () => {
      const order = time && Uint32Array.from(values.keys()).filter((i) => time[i] === time[i] && values[i] === values[i]).sort((a, b) => time[a] - time[b]);
      const contending = s.contending();
      const at = (/** @type {number} */ k) => (order ? order[k] : k);
      const last = (order ? order.length : n) - 1;
      return { line: bestSoFar(points(last + 1, (k) => [X(at(k)), contending[at(k)]]), s.maximize()), first: X(at(0)), last: X(at(last)) };
    });
    const side = Math.max(0.5, (last - first) * 0.01);
    const [low, high] = zoom ?? [first - side, last + side];
    const x = time ? moments(low, high) : span(low, high, true);
    const f = frame(chart.canvas, { width, height, x: { title: time ? "end of the trial" : "trial", ticks: x.ticks, whole: true }, y: { title: s.objective().name, ticks: sc.ticks } });
    across = (at) => x.v(f.U(at));
    const { marks, n: broken } = s.breaking;
    const [from, to] = time ? [0, n] : [Math.max(0, Math.floor(low)), Math.min(n, Math.ceil(high) + 1)];
    for (const which of broken ? [1, 0] : [0]) {
      f.dots((put) => {
        for (let i = from; i < to; i++) if (values[i] === values[i] && marks[i] === which) put(x.u(X(i)), sc.edge(values[i]));
      }, Math.min(to - from, which ? broken : sorted.length), which ? "--muted" : "--accent");
    }
    // Trials that ended without a result: pruned ones at their last report, others at the edge.
    const level = (/** @type {number} */ i) => (values[i] === values[i] ? sc.edge(values[i]) : mark(i) === "pruned" && Number.isFinite(reported[i]) ? sc.edge(reported[i]) : 0.01);
    place = (i) => {
      const u = x.u(X(i));
      return u >= 0 && u <= 1 && (values[i] === values[i] || mark(i)) ? [f.X(u), f.Y(level(i))] : null;
    };
    const seen = new Set();
    f.within(() => {
      for (let i = 0; i < n && n <= mostMarks; i++) {
        const [kind, at] = [mark(i), place(i)];
        if (!kind || !at) continue;
        seen.add(kind);
        cross(f.g, at, css(kind === "pruned" ? "--muted" : "--best"));
      }
      trace(f, { name: "", ...line, colour: "--best", width: 2, stepped: true }, x.u, sc.u);
      if (steered) trace(f, { name: "", x: [X(cursor), X(cursor)], y: [sc.low, sc.high], colour: "--muted", width: 1, dash: [4, 3] }, x.u, sc.u);
    });
    note.replaceChildren(...[
      h("span", { class: "key dot" }), n > mostMarks ? "density of trials" : "a trial",
      broken ? [h("span", { class: "key dot broken" }), "it breaks a constraint"] : "",
      h("span", { class: "key line" }), "best so far",
      seen.has("pruned") ? [h("span", { class: "key mark muted" }, "✕"), "pruned, at its last report"] : "",
      seen.has("failed") || seen.has("infeasible") ? [h("span", { class: "key mark" }, "✕"), "failed"] : "",
      n > 300 ? " · drag to zoom, double-click to see all" : "",
      sc.left ? ` · ${count(sc.left)} far values lie at the ${s.maximize() ? "lower" : "upper"} edge` : ""].flat());
  }

  function steer(/** @type {KeyboardEvent} */ e) {
    const [values, n] = [s.values(), s.table.n];
    const step = e.shiftKey ? Math.max(1, Math.round(n / 50)) : 1;
    if (e.key === "Enter" && cursor >= 0) location.assign(trialURL(s.name, cursor));
    const to = { ArrowLeft: Math.max(0, cursor - step), ArrowRight: Math.min(n - 1, cursor + step), Home: 0, End: n - 1 }[e.key];
    if (to === undefined || !n) return;
    e.preventDefault();
    [cursor, steered] = [to, true];
    readout.replaceChildren(h("a", { href: trialURL(s.name, to) }, `#${count(to)}`), ` ${s.objective().name} ${number(values[to], 6)}`, values[to] !== values[to] || s.breaks(to) ? ` (${s.stateOf(to)})` : "");
    chart.draw();
  }

  const element = figure({
    title: "Best so far", name: `${s.name}-history`, wide: true,
    cli: `tuner plot ${quote(s.name)} --only history`,
    tools: [h("label", {}, log, " log"), h("label", {}, "x ", byTime)],
    body: [chart.box, readout, note],
    canvas: () => chart.canvas,
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
    chart.draw();
  } };
}

/** points yields n points. @returns {Iterable<[number, number]>} */
function* points(/** @type {number} */ n, /** @type {(k: number) => [number, number]} */ of) {
  for (let k = 0; k < n; k++) yield of(k);
}

function cross(/** @type {CanvasRenderingContext2D} */ g, /** @type {number[]} */ [x, y], /** @type {string} */ colour) {
  g.strokeStyle = colour;
  g.lineWidth = 1.2;
  g.beginPath();
  for (const d of [-3, 3]) {
    g.moveTo(x - 3, y - d);
    g.lineTo(x + 3, y + d);
  }
  g.stroke();
}

/** zooms calls f with the pixels between which the pointer was dragged. */
function zooms(/** @type {HTMLElement} */ box, /** @type {(from: number, to: number) => void} */ f) {
  const shade = h("div", { class: "shade", hidden: true });
  box.append(shade);
  let from = NaN;
  const range = (/** @type {PointerEvent} */ e) => [from, e.clientX - box.getBoundingClientRect().left].sort((a, b) => a - b);
  box.addEventListener("pointerdown", (e) => {
    if (!e.button && e.pointerType !== "touch") from = e.clientX - box.getBoundingClientRect().left;
  });
  box.addEventListener("pointermove", (e) => {
    if (from !== from) return;
    const [a, b] = range(e);
    shade.hidden = b - a < 6;
    if (!shade.hidden) box.setPointerCapture(e.pointerId);
    shade.style.setProperty("left", `${a}px`);
    shade.style.setProperty("width", `${b - a}px`);
  });
  box.addEventListener("pointerup", (e) => {
    const [a, b] = range(e);
    if (!shade.hidden) f(a, b);
    from = NaN;
    shade.hidden = true;
  });
}
