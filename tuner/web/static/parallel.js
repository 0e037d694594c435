// @ts-check
// Parallel coordinates. All trials are a pale density, and the best of them lie on top.
// Dragging along an axis keeps the trials that pass there.

import { count, css, h, onScheme, onWidth, quote, rgb } from "./dom.js";
import { at, coordinate, exact, INACTIVE, parameters, ranks, scale, TOP } from "./columns.js";
import { figure } from "./figure.js";
import { paretoOf } from "./front.js";
import { cut, paint, sized, text } from "./plot.js";

const height = 300;
const margin = { left: 14, right: 58, top: 8, bottom: 8 };
const leastGap = 84;
const strip = 0.09; // of an axis, below the values, for trials on which the parameter is inactive

/**
 * @param {import("./study.js").Study} s
 * @param {AbortSignal} signal
 * @param {() => void} selected called when the selection changes
 */
export function parallel(s, signal, selected) {
  const canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { "aria-hidden": "true" }));
  const names = h("div", { class: "axis-names" });
  const inner = h("div", { class: "parallel-inner" }, names, canvas);
  const box = h("div", { class: "chart parallel", tabindex: "0", role: "group", "aria-label": "Parallel coordinates. The ranges below filter with the keyboard." }, inner);
  const status = h("p", { class: "readout", role: "status" });
  const note = h("p", { class: "hint" });
  const ranges = h("div", { class: "ranges" });
  const clear = h("button", { type: "button", disabled: true, onclick: () => reset() }, "Clear filters");
  const brushes = /** @type {Map<string, [number, number]>} */ (new Map()); // by axis, in 16 bits
  let axes = /** @type {{key: string, name: string, data: any, drawn: any, axis: any, base: number, sc: any}[]} */ ([]);
  let shown = axes;
  let gap = 100;
  let all = false; // also the parameters that matter less

  /** prepare reads the study. */
  function prepare() {
    axes = parameters(s.table).map((c) => ({ key: c.name, name: c.name, data: c.data, drawn: raised(c.data, c.axis.conditional ? strip : 0), axis: c.axis, base: c.axis.conditional ? strip : 0, sc: null }));
    const all = s.info.spec.objectives;
    all.forEach((/** @type {any} */ o, /** @type {number} */ k) => {
      const values = s.values(k);
      const maximize = o.direction === "DIRECTION_MAXIMIZE";
      const sc = scale(ranks(values, maximize).sorted, maximize);
      const u = new Uint16Array(values.length);
      for (let i = 0; i < u.length; i++) {
        const v = values[i];
        u[i] = v !== v ? INACTIVE : Math.max(0, Math.min(TOP, sc.u(v) * TOP));
      }
      axes.push({ key: k ? `\n${k}` : "", name: o.name, data: u, drawn: u, axis: null, base: 0, sc });
    });
    for (const key of brushes.keys()) if (!axes.some((a) => a.key === key)) brushes.delete(key);
    form();
  }

  /** choose takes the axes that have room. */
  function choose() {
    const room = box.clientWidth - margin.left - margin.right;
    shown = axes;
    const few = Math.max(5, Math.floor(room / leastGap) + 1);
    if (!all && axes.length > few) {
      const order = s.importance();
      const weight = (/** @type {any} */ a) => (a.sc || brushes.has(a.key) ? Infinity : order.get(a.key) ?? 0);
      const kept = new Set([...axes].sort((a, b) => weight(b) - weight(a)).slice(0, few));
      shown = axes.filter((a) => kept.has(a));
    }
    more.hidden = axes.length <= few;
    more.textContent = all ? "Fewer axes" : `All ${axes.filter((a) => a.axis).length} parameters`;
    gap = Math.max(leastGap, Math.floor(room / Math.max(1, shown.length - 1)));
  }
  const more = h("button", { type: "button", class: "quiet", hidden: true, onclick: () => {
    all = !all;
    draw();
  } });

  /** passing marks the trials that all brushes let pass. */
  function passing() {
    const n = s.table.n;
    const values = s.values();
    const pass = new Uint8Array(n);
    for (let i = 0; i < n; i++) pass[i] = values[i] === values[i] ? 1 : 0;
    for (const [key, [low, high]] of brushes) {
      const data = axes.find((a) => a.key === key)?.data;
      if (data) for (let i = 0; i < n; i++) if (data[i] < low || data[i] > high) pass[i] = 0;
    }
    return pass;
  }

  function draw() {
    if (!box.isConnected || !box.clientWidth) return;
    choose();
    const W = margin.left + margin.right + gap * (shown.length - 1);
    const [, g] = sized(canvas, W, height);
    inner.style.setProperty("width", `${W}px`);
    const pass = passing();
    const values = s.values();
    const contending = s.contending();
    const { good, top, contending: rivals } = s.ranked();
    const front = s.info.spec.objectives.length > 1 ? new Set(paretoOf(s)) : null;
    const best = new Uint8Array(pass.length);
    const broken = s.broken() ? new Uint8Array(pass.length) : null;
    const sound = broken ? pass.slice() : pass; // without those that break a constraint
    let kept = 0;
    let finished = 0;
    for (let i = 0; i < pass.length; i++) {
      if (values[i] === values[i]) finished++;
      kept += pass[i];
      best[i] = pass[i] && (front ? front.has(i) : good(contending[i])) ? 1 : 0;
      if (broken && pass[i] && s.breaks(i)) [broken[i], sound[i]] = [1, 0];
    }
    const drawn = shown.map((a) => a.drawn);
    const plain = rgb("--accent");
    const grey = rgb("--muted");
    const red = rgb("--best");
    const w = gap * (shown.length - 1);
    const hh = height - margin.top - margin.bottom;
    if (finished <= 1500) {
      if (broken) lines(g, drawn, broken, `rgb(${grey.join(" ")} / 0.25)`, 1, hh);
      lines(g, drawn, sound, `rgb(${plain.join(" ")} / ${Math.max(0.12, Math.min(0.5, 40 / Math.max(1, kept)))})`, 1, hh);
      lines(g, drawn, best, `rgb(${red.join(" ")} / 0.85)`, 1.5, hh);
    } else {
      if (broken) paint(g, bins(drawn, w, hh, broken, 128, 9), w, hh, grey, 8, 90, margin.left, margin.top, w, hh);
      paint(g, bins(drawn, w, hh, sound, 128, 9), w, hh, plain, 8, 150, margin.left, margin.top, w, hh);
      paint(g, bins(drawn, w, hh, best, 256, 8), w, hh, red, 28, 235, margin.left, margin.top, w, hh);
    }
    frame(g, hh);
    status.textContent = brushes.size ? `${count(kept)} of ${count(finished)} completed trials pass the filters` : `${count(finished)} completed trials`;
    const share = top === Math.ceil(rivals / 100) && top > 10 ? "the best 1 %" : `the best ${top}`;
    const chosen = front ? "the trials of the front" : share;
    note.replaceChildren(h("span", { class: "key dot" }), "all trials", ...(broken ? [h("span", { class: "key dot broken" }), "trials that break a constraint"] : []), h("span", { class: "key line" }), chosen, " · drag along an axis to filter, Escape clears",
      shown.some((a) => a.base) ? " · below the values lie trials on which the parameter is inactive" : "");
    clear.disabled = brushes.size === 0;
  }

  /** lines draws each trial on its own. */
  function lines(/** @type {CanvasRenderingContext2D} */ g, /** @type {any[]} */ drawn, /** @type {Uint8Array} */ keep, /** @type {string} */ colour, /** @type {number} */ width, /** @type {number} */ hh) {
    g.strokeStyle = colour;
    g.lineWidth = width;
    for (let i = 0; i < keep.length; i++) {
      if (!keep[i]) continue;
      g.beginPath();
      for (let a = 0; a < drawn.length; a++) g.lineTo(margin.left + a * gap, margin.top + hh * (1 - drawn[a][i] / TOP));
      g.stroke();
    }
  }

  /** frame draws the axes with their marks and brushes, and names them. */
  function frame(/** @type {CanvasRenderingContext2D} */ g, /** @type {number} */ hh) {
    const fg = css("--fg");
    const colours = { fill: fg, halo: css("--card") };
    g.font = "11px system-ui, sans-serif";
    g.textBaseline = "middle";
    const Y = (/** @type {any} */ a, /** @type {number} */ u) => margin.top + hh * (1 - a.base - (1 - a.base) * u);
    shown.forEach((a, k) => {
      const x = margin.left + k * gap + 0.5;
      g.strokeStyle = css("--axis");
      g.lineWidth = 1;
      g.beginPath();
      g.moveTo(x, margin.top);
      g.lineTo(x, margin.top + hh);
      g.stroke();
      const b = brushes.get(a.key);
      if (b) {
        const y0 = Y(a, Math.min(TOP, b[1]) / TOP);
        const y1 = Y(a, Math.max(0, b[0]) / TOP);
        g.fillStyle = css("--brush");
        g.fillRect(x - 8, y0, 16, Math.max(2, y1 - y0));
        g.strokeStyle = fg;
        g.strokeRect(x - 8, y0, 16, Math.max(2, y1 - y0));
      }
      if (a.base) text(g, "inactive", x + 6, margin.top + hh - 4, { fill: css("--muted"), halo: colours.halo });
      for (const t of a.axis ? a.axis.ticks : a.sc.ticks) {
        const y = Y(a, t.u);
        if (y < 0 || y > height) continue;
        g.strokeStyle = css("--axis");
        g.beginPath();
        g.moveTo(x - 3, y);
        g.lineTo(x + 3, y);
        g.stroke();
        text(g, cut(g, t.label, gap - 24), x + 6, Math.max(7, Math.min(height - 7, y)), colours);
      }
    });
    // The last name ends at the edge, and may take some of the room before it.
    const last = shown.length - 1;
    const lent = Math.min(0.4 * gap, Math.max(0, g.measureText(shown[last]?.name ?? "").width * 1.4 - margin.right));
    names.replaceChildren(...shown.map((a, k) => h("span", { class: a.axis ? "" : "objective", title: a.name, style: { left: `${margin.left + k * gap - (k === last ? lent : 0)}px`, width: `${k === last ? margin.right + lent : gap - 6 - (k === last - 1 ? lent : 0)}px`, "text-align": k === last && lent ? "right" : "left" } }, a.name)));
  }

  // Brushes by pointer.
  let drag = /** @type {{key: string, from: number}|null} */ (null);
  let waiting = 0;
  const place = (/** @type {PointerEvent} */ e) => {
    const r = canvas.getBoundingClientRect();
    const k = Math.round((e.clientX - r.left - margin.left) / gap);
    const base = shown[k]?.base ?? 0;
    const u = (1 - (e.clientY - r.top - margin.top) / (height - margin.top - margin.bottom) - base) / (1 - base);
    return { k, near: Math.abs(e.clientX - r.left - margin.left - k * gap) < 22, u: Math.max(0, Math.min(1, u)) };
  };
  const changed = () => {
    if (!waiting) waiting = requestAnimationFrame(() => {
      waiting = 0;
      draw();
      form(false);
      selected();
    });
  };
  canvas.addEventListener("pointerdown", (e) => {
    const { k, near, u } = place(e);
    if (!near || !shown[k]) return;
    drag = { key: shown[k].key, from: u };
    canvas.setPointerCapture(e.pointerId);
    e.preventDefault();
  });
  canvas.addEventListener("pointermove", (e) => {
    const { k, near, u } = place(e);
    canvas.style.setProperty("cursor", near && shown[k] ? "ns-resize" : "default");
    if (!drag) return;
    const [a, b] = drag.from < u ? [drag.from, u] : [u, drag.from];
    // Up to an end includes the end.
    brushes.set(drag.key, [a < 0.01 ? 0 : Math.floor(a * TOP), b > 0.99 ? TOP : Math.ceil(b * TOP)]);
    changed();
  });
  canvas.addEventListener("pointerup", (e) => {
    if (drag && Math.abs(place(e).u - drag.from) < 0.01 && brushes.delete(drag.key)) changed();
    drag = null;
  });
  box.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
    if (e.key === "Escape" && brushes.size) reset();
  });
  function reset() {
    brushes.clear();
    changed();
    form();
  }

  /** form writes the fields for ranges, which say the same as the brushes. */
  function form(make = true) {
    if (make || ranges.childElementCount !== axes.length) ranges.replaceChildren(...axes.map(fields));
    axes.forEach((a, k) => {
      const [low, high] = ranges.children[k].querySelectorAll("input, select");
      const b = brushes.get(a.key);
      for (const [input, end] of [[low, 0], [high, 1]]) {
        if (document.activeElement === input) continue;
        input.value = b ? read(a, b[end] / TOP) : "";
      }
    });
  }
  const read = (/** @type {any} */ a, /** @type {number} */ u) => {
    const v = a.axis ? at(a.axis, u) : a.sc.v(u);
    return typeof v === "number" ? String(Number(v.toPrecision(4))) : v;
  };
  function fields(/** @type {any} */ a) {
    const listed = a.axis?.labels;
    const field = (/** @type {string} */ which) => {
      const label = `${a.name}, ${which}`;
      if (listed) return h("select", { "aria-label": label, onchange: take }, h("option", { value: "" }, "any"), listed.map((/** @type {string} */ l) => h("option", { value: l }, l)));
      return h("input", { type: "text", inputmode: "decimal", size: "8", "aria-label": label, onchange: take, placeholder: which === "from" ? "least" : "most" });
    };
    const from = field("from");
    const to = field("to");
    function take() {
      const u = (/** @type {any} */ input, /** @type {number} */ otherwise) => {
        if (input.value === "") return otherwise;
        const x = a.axis ? coordinate(a.axis, input.value) : a.sc.u(Number(input.value));
        input.setAttribute("aria-invalid", String(Number.isNaN(x)));
        return Number.isNaN(x) ? otherwise : Math.max(0, Math.min(1, x));
      };
      const half = a.axis?.levels ? 0.5 / a.axis.levels : 0;
      if (from.value === "" && to.value === "") brushes.delete(a.key);
      else brushes.set(a.key, [Math.floor(Math.max(0, u(from, 0) - half) * TOP), Math.ceil(Math.min(1, u(to, 1) + half) * TOP)]);
      changed();
    }
    return h("div", { class: "range" }, h("span", {}, a.name), from, h("span", { "aria-hidden": "true" }, "–"), to);
  }

  onScheme(draw, signal);
  onWidth(box, draw, signal);
  const element = figure({
    title: "Parallel coordinates", name: `${s.name}-parallel`, wide: true, cli: `tuner trials ${quote(s.name)} -f csv`,
    tools: [more, clear],
    body: h("div", {}, box, status, note, h("details", {}, h("summary", {}, "Filter by numbers"), ranges)),
    canvas: () => canvas,
    rows: async () => {
      await s.need(["config/"]);
      const all = parameters(s.table);
      const read = all.map((c) => exact(s.table, c));
      const rows = [["trial", ...all.map((c) => c.name), ...s.info.spec.objectives.map((/** @type {any} */ o) => o.name)]];
      passing().forEach((pass, i) => pass && rows.push([i, ...read.map((f) => f(i)), ...s.info.spec.objectives.map((/** @type {any} */ _, /** @type {number} */ k) => s.values(k)[i])]));
      return rows;
    },
  });
  return {
    element,
    update() {
      prepare();
      draw();
    },
    redraw: draw,
    /** selection is which trials pass, or null if all do. */
    selection: () => (brushes.size ? passing() : null),
    describe: () => [...brushes].map(([key, b]) => {
      const a = axes.find((x) => x.key === key);
      return a ? `${a.name} ${read(a, b[0] / TOP)} … ${read(a, b[1] / TOP)}` : "";
    }).join(", "),
  };
}

/** raised makes room below the values for trials on which the parameter is inactive. */
function raised(/** @type {Uint16Array} */ data, /** @type {number} */ base) {
  return base ? data.map((u) => (u === INACTIVE ? 0 : TOP * (base + ((1 - base) * u) / TOP))) : data;
}

/** bins counts the lines between cells of neighbouring axes, and draws each pair of cells once. */
function bins(/** @type {any[]} */ drawn, /** @type {number} */ W, /** @type {number} */ H, /** @type {Uint8Array} */ keep, /** @type {number} */ Q, /** @type {number} */ shift) {
  const weights = new Float32Array(W * H);
  const counts = new Uint32Array(Q * Q);
  const gap = W / (drawn.length - 1);
  for (let a = 0; a < drawn.length - 1; a++) {
    counts.fill(0);
    const from = drawn[a];
    const to = drawn[a + 1];
    for (let i = 0; i < keep.length; i++) {
      if (keep[i]) counts[(from[i] >> shift) * Q + (to[i] >> shift)]++;
    }
    const x0 = Math.round(a * gap);
    const x1 = Math.round((a + 1) * gap);
    for (let p = 0; p < Q; p++) {
      for (let q = 0; q < Q; q++) {
        const c = counts[p * Q + q];
        if (!c) continue;
        const step = ((p - q) / Q) * ((H - 1) / gap);
        let y = H - 1 - ((p + 0.5) / Q) * (H - 1);
        for (let x = x0; x < x1; x++) {
          weights[(y | 0) * W + x] += c;
          y += step;
        }
      }
    }
  }
  return weights;
}
