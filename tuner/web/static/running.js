// @ts-check
// The trials that run now, with the curve of what they reported.

import { call, serverNow } from "./api.js";
import { stopButton, stopNote } from "./actions.js";
import { duration, h, number, quote, trialURL } from "./dom.js";
import { figure } from "./figure.js";
import { waits } from "./states.js";

const shown = 30;

/** spark draws values as a small line. */
function spark(/** @type {{step: number, value: number}[]} */ points, width = 80, height = 24) {
  const finite = points.filter((p) => Number.isFinite(p.value));
  if (finite.length < 2) return h("svg", { width, height, "aria-hidden": "true", class: "spark" });
  const xs = finite.map((p) => p.step);
  const ys = finite.map((p) => p.value);
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const path = finite.map((p) => `${(2 + ((p.step - x0) / (x1 - x0 || 1)) * (width - 4)).toFixed(1)},${(height - 2 - ((p.value - y0) / (y1 - y0 || 1)) * (height - 4)).toFixed(1)}`);
  return h("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", class: "spark" }, h("polyline", { points: path.join(" "), fill: "none" }));
}

/** thin keeps the least and greatest value of each bucket, because divergence matters. */
export function thin(/** @type {{step: number, value: number}[]} */ points, most = 2400) {
  if (points.length <= most) return points;
  const buckets = most / 2;
  const out = [];
  for (let b = 0; b < buckets; b++) {
    const part = points.slice(Math.floor((b * points.length) / buckets), Math.floor(((b + 1) * points.length) / buckets));
    let low = part[0];
    let high = part[0];
    for (const p of part) {
      if (p.value < low.value) low = p;
      if (p.value > high.value) high = p;
    }
    out.push(...(low === high ? [low] : low.step < high.step ? [low, high] : [high, low]));
  }
  return out;
}

/**
 * loadReports loads all reports of a trial by metric. A trial that began again has reports of
 * several epochs.
 */
export async function loadReports(/** @type {string} */ trial, /** @type {AbortSignal} */ signal) {
  const curves = /** @type {Map<string, {epoch: number, step: number, value: number}[]>} */ (new Map());
  let pageToken = "";
  do {
    const page = await call("ListReports", { parent: trial, pageToken }, signal);
    for (const r of page.reports ?? []) {
      for (const [name, v] of Object.entries(r.values ?? {})) {
        if (!curves.has(name)) curves.set(name, []);
        curves.get(name)?.push({ epoch: r.epoch ?? 0, step: Number(r.step ?? 0), value: Number(v) });
      }
    }
    pageToken = page.nextPageToken ?? "";
  } while (pageToken);
  for (const c of curves.values()) c.sort((a, b) => a.epoch - b.epoch || a.step - b.step);
  return curves;
}

/**
 * @param {import("./study.js").Study} s
 * @param {AbortSignal} signal
 * @param {() => void} changed
 */
export function running(s, signal, changed) {
  const list = h("ul", { class: "running" });
  const curves = /** @type {Map<number, {next: number, epoch: number, points: {step: number, value: number}[], loading: Promise<any>}>} */ (new Map());
  let trials = /** @type {any[]} */ ([]);
  let more = false;

  async function update() {
    if (!Number(s.info.running ?? 0)) trials = [];
    else {
      const page = await call("ListTrials", { parent: `studies/${s.name}`, states: ["TRIAL_STATE_RUNNING"], pageSize: shown + 1 }, signal);
      trials = (page.trials ?? []).map((/** @type {any} */ t) => ({ ...t, number: Number(t.number ?? 0) }));
      more = trials.length > shown || Boolean(page.nextPageToken);
      trials = trials.slice(0, shown);
    }
    const alive = new Set(trials.map((t) => t.number));
    for (const n of curves.keys()) if (!alive.has(n)) curves.delete(n);
    await Promise.all(trials.filter((t) => !curves.has(t.number) || !s.fresh.has(t.number)).slice(0, 8).map(further));
    draw();
  }

  /** further loads what a trial has reported since, one page at a time. */
  function further(/** @type {any} */ t) {
    const c = curves.get(t.number) ?? { next: 0, epoch: 0, points: [], loading: Promise.resolve() };
    curves.set(t.number, c);
    s.fresh.add(t.number); // a change meanwhile takes it out again
    c.loading = c.loading.catch(() => {}).then(() => load(t, c)).catch((e) => {
      s.fresh.delete(t.number);
      throw e;
    });
    return c.loading;
  }

  async function load(/** @type {any} */ t, /** @type {any} */ c) {
    const page = await call("ListReports", { parent: t.name, pageToken: c.next ? String(c.next) : "" }, signal);
    const reports = page.reports ?? [];
    c.next += reports.length;
    for (const r of reports) {
      if ((r.epoch ?? 0) > c.epoch) [c.epoch, c.points] = [r.epoch, []]; // the trial began again
      const v = r.values?.[s.objective().name] ?? Object.values(r.values ?? {})[0];
      if (v !== undefined) c.points.push({ step: Number(r.step ?? 0), value: Number(v) });
    }
  }

  /** pointsOf are those that a trial has reported since it began last. */
  const pointsOf = (/** @type {any} */ t) => {
    const c = curves.get(t.number);
    return c && c.epoch === (t.epoch ?? 0) ? c.points : [];
  };

  function draw() {
    element.toggleAttribute("hidden", !trials.length && (s.info.state !== "STUDY_STATE_ACTIVE" || waits(s.info)));
    if (!trials.length) {
      list.replaceChildren(h("li", { class: "empty" }, "No trial runs now."));
      return;
    }
    list.replaceChildren(...trials.map((t) => {
      const c = pointsOf(t);
      const last = c[c.length - 1];
      const since = (serverNow() - Date.parse(t.startTime)) / 1000;
      const left = (Date.parse(t.leaseDeadline) - serverNow()) / 1000;
      return h("li", {},
        h("a", { href: trialURL(s.name, t.number) }, `#${t.number}`),
        h("span", { class: "worker", title: t.worker || "no name" }, t.worker || "unnamed worker"),
        spark(thin(c, 240), 50),
        h("span", { class: "num" }, last ? `${number(last.value, 4)}, step ${last.step}` : "no report yet"),
        h("span", { class: "muted num" }, duration(since).split(" ").slice(0, 2).join(" ")),
        t.attributes?.[stopNote] ? h("span", { class: "warn", title: t.attributes[stopNote] }, "stopping") : stopButton(s.name, t, changed),
        left < 0 && h("span", { class: "warn" }, "lease expired"));
    }), more ? h("li", { class: "muted" }, `Only the first ${shown} are listed.`) : "");
  }
  const clock = setInterval(() => !document.hidden && list.isConnected && trials.length && draw(), 5000);
  signal.addEventListener("abort", () => clearInterval(clock));
  const element = figure({
    title: "Running now", name: `${s.name}-running`, cli: `tuner trials ${quote(s.name)} --state running`, body: list,
    rows: () => [["trial", "worker", "step", s.objective().name, "seconds"], ...trials.map((t) => {
      const last = pointsOf(t).at(-1);
      return [t.number, t.worker ?? "", last?.step ?? "", last?.value ?? NaN, (serverNow() - Date.parse(t.startTime)) / 1000];
    })],
  });
  return { element, update };
}
