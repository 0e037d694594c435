// @ts-check
// The page of a study.

import { APIError, call, follow, loadColumns, offline, serverNow } from "./api.js";
import { column, exact, limited, merge, objectives, parameters, ranks } from "./columns.js";
import { ago, command, count, h, number, quote, trialStateNames, valueOf } from "./dom.js";
import { actions } from "./actions.js";
import { answer, failures } from "./answer.js";
import { cost } from "./cost.js";
import { curves } from "./curves.js";
import { front } from "./front.js";
import { history } from "./history.js";
import { parallel } from "./parallel.js";
import { contour, distribution, slices } from "./slices.js";
import { beliefs, diagnosis, importances } from "./model.js";
import { running } from "./running.js";
import { trials } from "./trials.js";
import { settings } from "./settings.js";
import { failure, notice, skeleton, studyState } from "./states.js";

const COMPLETED = trialStateNames.indexOf("completed");
const manyChanges = 500; // trials in one load, from which on the next load waits longer
const modelEvery = 30_000; // milliseconds between two questions that need the model

/**
 * Trial is what the views tell of one trial.
 * @typedef {{n: number, state: string, config: [string, any][], values: number[], others: [string, number][], times: number, worker: string, seconds: number, message: string}} Trial
 */

/**
 * View is a part of the page.
 * @typedef {{element?: any, elements?: any[], update: () => any}} View
 */

/** Study is what the views of one study share. */
export class Study {
  constructor(/** @type {string} */ name) {
    this.name = name;
    this.info = /** @type {any} */ ({});
    this.table = /** @type {import("./columns.js").Table} */ ({ uid: 0, n: 0, rows: 0, position: 0, columns: [] });
    this.extra = /** @type {string[]} */ ([]);
    this.changed = /** @type {Uint32Array|undefined} */ (undefined); // by the last load, if few
    this.fresh = /** @type {Set<number>} */ (new Set()); // trials whose reports were loaded since they changed
    this.chosen = 0; // the objective shown
    this.weights = /** @type {Map<number, any[]>} */ (new Map()); // of the parameters by objective
    this.importanceNoise = 0;
    this.noImportance = "Loading";
    this.space = /** @type {any} */ (null);
    this.slices = /** @type {Map<string, any>} */ (new Map());
    this.recommended = -1; // the trial that the model recommends
    this.believed = /** @type {{trial: number, mean: number, sd: number, noise: number}|null} */ (null); // of the recommended trial
    this.asked = 0; // times that the model was asked
    this.through = /** @type {any} */ (null); // the recommended configuration
    this.bestThen = -1; // the best measured trial when the model was asked
    this.diagnosis = /** @type {any} */ (null);
    this.trials = /** @type {Map<number, Promise<Trial>>} */ (new Map()); // those that have ended and were asked for
    this.uid = /** @type {any} */ (0);
    this.made = /** @type {Map<string, any>} */ (new Map()); // what of the table was computed since it was loaded
  }

  /** load loads all trials, or those that changed since. */
  async load(/** @type {AbortSignal|undefined} */ signal, changes = false) {
    const after = changes ? this.table.position : 0;
    const got = await loadColumns(this.name, this.extra, after, signal);
    this.table = (after ? merge(this.table, got) : got) ?? (await loadColumns(this.name, this.extra, 0, signal));
    this.changed = after ? column(got, "number") : undefined;
    if (this.changed) for (const n of this.changed) this.fresh.delete(n);
    else if (!after || got.rows) this.fresh.clear();
    if (!after || got.uid !== this.uid) this.trials.clear();
    this.uid = got.uid;
    this.made.clear();
  }

  /** need loads further columns. */
  async need(/** @type {string[]} */ names) {
    const missing = names.filter((n) => !this.extra.includes(n) && !this.table.columns.some((c) => c.name === n || (n.endsWith("/") && c.name.startsWith(n))));
    if (!missing.length) return;
    this.extra.push(...missing);
    await this.load(undefined);
  }

  /** modelled tells whether the proposer has a model. */
  modelled() {
    return ["", "bkb"].includes(this.info.spec.proposer?.name ?? "");
  }
  /** range is that of a numeric parameter. */
  range(/** @type {string} */ name) {
    this.space ??= JSON.parse(this.info.spec.space);
    return this.space.parameters[name] ?? {};
  }
  /** trial tells of one trial. @returns {Promise<Trial>} */
  trial(/** @type {number} */ n) {
    const known = this.trials.get(n);
    if (known) return known;
    const asked = this.ask(n);
    if (["completed", "failed", "infeasible", "pruned"].includes(trialStateNames[column(this.table, "state")[n]])) this.trials.set(n, asked);
    asked.catch(() => this.trials.delete(n));
    return asked;
  }
  /** ask asks for a trial. A file has the first ones in full, and all as columns. */
  async ask(/** @type {number} */ n) {
    const names = this.info.spec.objectives.map((/** @type {any} */ o) => o.name);
    const state = this.stateOf(n);
    const t = await call("GetTrial", { name: `studies/${this.name}/trials/${n}` }).catch((e) => {
      if (!offline) throw e;
    });
    if (!t) {
      const [started, ended, worker] = [column(this.table, "started"), column(this.table, "ended"), this.table.columns.find((c) => c.name === "worker")];
      return { n, state, config: parameters(this.table).map((c) => /** @type {[string, any]} */ ([c.name, exact(this.table, c)(n)])).filter(([, v]) => v !== "").sort(), values: objectives(this.table).map((c) => c.data[n]), others: limited(this.table).map((c) => /** @type {[string, number]} */ ([c.name, c.data[n]])), times: 1,
        worker: worker?.labels?.[worker.data[n]] ?? "", seconds: ended[n] - started[n], message: "" };
    }
    const of = (/** @type {string} */ k) => (t.outcome?.metrics?.[k]?.values ?? []).map(Number);
    const mean = (/** @type {number[]} */ v) => (v.length ? v.reduce((a, b) => a + b, 0) / v.length : NaN);
    return { n, state, config: Object.entries(t.config ?? {}).map(([k, v]) => /** @type {[string, any]} */ ([k, valueOf(v)])).sort(), values: names.map((/** @type {string} */ k) => mean(of(k))), others: Object.keys(t.outcome?.metrics ?? {}).filter((k) => !names.includes(k)).map((k) => /** @type {[string, number]} */ ([k, mean(of(k))])), times: of(names[0]).length,
      worker: t.worker ?? "", seconds: t.startTime && t.endTime ? (Date.parse(t.endTime) - Date.parse(t.startTime)) / 1000 : NaN, message: t.outcome?.message ?? "" };
  }
  /** sinceBest is the number of results after the best one. */
  sinceBest() {
    const [best, values] = [this.best(), this.values()];
    let n = 0;
    for (let i = best + 1; i < values.length; i++) if (values[i] === values[i]) n++;
    return n;
  }
  /** importances are the weights of the parameters for the objective shown. */
  get importances() {
    return this.weights.get(this.chosen);
  }
  objective() {
    return this.info.spec.objectives[this.chosen];
  }
  maximize() {
    return this.objective().direction === "DIRECTION_MAXIMIZE";
  }
  /** once computes something of the table once. @template T @returns {T} */
  once(/** @type {string} */ key, /** @type {() => T} */ make) {
    if (!this.made.has(key)) this.made.set(key, make());
    return this.made.get(key);
  }
  /** values are those of an objective by trial, NaN unless the trial has completed. @returns {Float64Array} */
  values(k = this.chosen) {
    return this.once(`values ${k}`, () => {
      const states = column(this.table, "state");
      const told = objectives(this.table)[k]?.data ?? new Float64Array(0);
      return told.map((/** @type {number} */ v, /** @type {number} */ i) => (states[i] === COMPLETED ? v : NaN));
    });
  }
  /**
   * contending are the values of the trials that can be the best, NaN for the others. They keep
   * the constraints, unless no trial does.
   * @returns {Float64Array}
   */
  contending(k = this.chosen) {
    return this.once(`contending ${k}`, () => {
      const feasible = column(this.table, "feasible");
      const values = this.values(k);
      return feasible?.includes(1) ? values.map((v, i) => (feasible[i] ? v : NaN)) : values;
    });
  }
  /** breaking marks the completed trials that break a constraint. @returns {{marks: Uint8Array, n: number}} */
  get breaking() {
    return this.once("breaking", () => {
      const [states, feasible] = [column(this.table, "state"), column(this.table, "feasible")];
      const marks = new Uint8Array(this.table.n);
      let n = 0;
      for (let i = 0; i < marks.length; i++) if (states[i] === COMPLETED && feasible[i] === 0) n += marks[i] = 1;
      return { marks, n };
    });
  }
  /** breaks tells whether a completed trial breaks a constraint. */
  breaks(/** @type {number} */ i) {
    return this.breaking.marks[i] === 1;
  }
  /** broken is the number of such trials. */
  broken() {
    return this.breaking.n;
  }
  /** limits are those of metrics, as words. @returns {Record<string, string>} */
  limits() {
    return this.once("limits", () => {
      const all = Object.entries(JSON.parse(this.info.spec.proposer?.options || "{}").constraints ?? {});
      const word = (/** @type {any} */ l) => [["max", "at most"], ["min", "at least"]].filter(([k]) => l[k] !== undefined).map(([k, text]) => `${text} ${number(l[k])}`).join(", ");
      return Object.fromEntries(all.map(([k, l]) => [k, word(l)]));
    });
  }
  /** ranked has the values of all completed trials in order, and says which of those that can be the best are good. */
  ranked() {
    return this.once(`ranked ${this.chosen}`, () => {
      const own = ranks(this.contending(), this.maximize());
      return { ...own, contending: own.sorted.length, sorted: this.broken() ? ranks(this.values(), this.maximize()).sorted : own.sorted };
    });
  }
  stateOf(/** @type {number} */ i) {
    return this.breaks(i) ? "breaks a constraint" : trialStateNames[column(this.table, "state")[i]];
  }
  /** importance is the weight of each parameter, as far as it is known. */
  importance() {
    return new Map((this.importances ?? []).map((p) => [p.name, p.total === p.total ? p.total : p.data]));
  }
  /** noModel says why there are no predictions. */
  noModel() {
    const d = this.diagnosis;
    if (!this.modelled()) return `the proposer ${this.info.spec.proposer.name} has no model`;
    if (d?.state === "MODEL_STATE_AT_NEXT_ASK") return "the next ask makes the model";
    if (d?.missingResults) return `the model needs ${count(Number(d.missingResults))} more ${Number(d.missingResults) === 1 ? "result" : "results"}`;
    return "the mean of the model appears once there is one";
  }
  /** anything tells whether a trial has completed. */
  anything() {
    return Number(this.info.completed ?? 0) > 0;
  }
  /** best is the number of the best measured trial, or -1. */
  best() {
    const values = this.contending();
    const sign = this.maximize() ? -1 : 1;
    let best = -1;
    for (let i = 0; i < values.length; i++) if (values[i] === values[i] && (best < 0 || sign * values[i] < sign * values[best])) best = i;
    return best;
  }
}

const tabs = /** @type {[string, string][]} */ ([["overview", "Overview"], ["parameters", "Parameters"], ["trials", "Trials"], ["curves", "Curves"], ["model", "Model"], ["cost", "Workers and cost"], ["settings", "Settings"]]);

/** study shows a study until the signal. */
export async function study(/** @type {HTMLElement} */ main, /** @type {string} */ name, /** @type {AbortSignal} */ signal, /** @type {(text: string) => void} */ live) {
  document.title = `${name} · BKB Tuner`;
  const s = new Study(name);
  const head = h("div", { class: "study-head" });
  const told = h("div");
  const nav = h("nav", { class: "tabs", "aria-label": "Views of the study" }, tabs.map(([id, title]) => h("a", { href: `#${id}` }, title)));
  const place = h("div", { class: "view" }, skeleton(10));
  main.replaceChildren(h("h1", {}, name), head, told, nav, place);
  const retry = () => study(main, name, signal, live);
  try {
    [s.info] = await Promise.all([call("GetStudy", { name: `studies/${name}` }, signal), s.load(signal)]);
  } catch (e) {
    if (!signal.aborted) place.replaceChildren(failure(e, retry, "Ask an admin for a token with the scope read or with this study."));
    return;
  }

  const views = {
    history: history(s, signal), running: running(s, signal, () => refresh()), importances: importances(s), slices: slices(s, signal), contour: contour(s, signal), distribution: distribution(s, signal),
    parallel: parallel(s, signal, () => shown() === "trials" && views.trials.update()),
    trials: trials(s, () => ({ pass: views.parallel.selection(), text: views.parallel.describe() })),
    answer: answer(s), failures: failures(s, signal), diagnosis: diagnosis(s, signal), front: front(s, signal), settings: settings(s, () => refresh()),
    curves: curves(s, signal), cost: cost(s, signal),
  };
  const several = s.info.spec.objectives.length > 1;
  /** side puts views below each other. @returns {View} */
  const side = (/** @type {View[]} */ ...list) => ({ element: h("div", { class: "side" }, list.map((v) => v.element)), update: () => list.map((v) => quietly(v.update())) });
  const beside = () => side(views.running, views.failures, views.importances);
  const pages = /** @type {Record<string, () => View[]>} */ ({
    overview: () => (!s.anything() ? [views.failures, views.running] : several ? [views.front, views.parallel, views.history, beside()] : [views.answer, views.history, beside(), views.parallel]),
    parameters: () => [views.parallel, views.slices, views.contour, views.distribution],
    trials: () => [views.trials],
    curves: () => [views.curves],
    model: () => [views.diagnosis, views.importances],
    cost: () => [views.cost],
    settings: () => [views.settings],
  });
  let current = /** @type {View[]} */ ([]);
  const shown = () => (pages[location.hash.slice(1)] ? location.hash.slice(1) : "overview");
  const quietly = (/** @type {any} */ p) => Promise.resolve(p).catch((e) => signal.aborted || e instanceof APIError || console.error(e));
  const update = () => current.forEach((v) => quietly(v.update()));

  function show() {
    for (const a of nav.children) {
      if (a.getAttribute("href") === `#${shown()}`) a.setAttribute("aria-current", "page");
      else a.removeAttribute("aria-current");
    }
    current = s.table.n || shown() === "settings" ? pages[shown()]() : [];
    place.className = `view ${shown()}${several && shown() === "overview" ? " several" : ""}`;
    place.replaceChildren(...(current.length ? current.flatMap((v) => v.elements ?? [v.element]) : [nothing()]));
    update();
  }
  const nothing = () => h("section", { class: "card empty-page" }, h("h2", {}, "No trial yet"), h("p", {}, "A worker asks for a configuration, runs it, and tells the result. The command gets the parameters in the place of {args}, such as --lr=0.01."),
    h("p", {}, command(`tuner run ${quote(name)} -- python train.py {args}`)), h("p", {}, "To run trials in a program of your own, ask for one configuration with"), h("p", {}, command(`tuner ask ${quote(name)}`)));

  const act = actions(s, () => refresh(), signal);
  function facts() {
    const i = s.info;
    const n = (/** @type {string} */ k) => Number(i[k] ?? 0);
    const max = Number(i.spec.maxTrials ?? 0);
    const items = /** @type {[string, any][]} */ ([
      ["state", studyState(i)],
      ["trials", max ? `${count(n("counted"))} of ${count(max)}${n("added") ? ` and ${count(n("added"))} added` : ""}` : count(s.table.n)],
      ["running", count(n("running"))],
    ]);
    if (n("queued")) items.push(["queued", count(n("queued"))]);
    for (const k of ["failed", "infeasible", "pruned"]) if (n(k)) items.push([k, count(n(k))]);
    if (i.cost) items.push(["cost", number(i.cost, 4)]);
    if (i.lastToldTime) items.push(["last result", ago((serverNow() - Date.parse(i.lastToldTime)) / 1000)]);
    const choose = i.spec.objectives.length > 1 && h("label", {}, "objective ", h("select", { onchange: (/** @type {any} */ e) => {
      s.chosen = e.target.selectedIndex;
      asked.position = -1;
      facts();
      update();
      model(true);
    } }, i.spec.objectives.map((/** @type {any} */ o, /** @type {number} */ k) => h("option", { selected: k === s.chosen }, o.name))));
    const focused = head.contains(document.activeElement) ? /** @type {any} */ (document.activeElement).textContent : null;
    head.replaceChildren(h("dl", { class: "facts" }, items.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v)))), choose || "", offline ? "" : act.buttons());
    told.replaceChildren(s.table.n ? notice(name, i) : "");
    if (focused) for (const b of head.querySelectorAll("button")) if (b.textContent === focused) b.focus();
  }

  /** model asks what needs the model: at most twice a minute, when there are new results. */
  let asked = { at: 0, position: -1 };
  let asking = 0;
  async function model(now = false) {
    clearTimeout(asking);
    const wait = asked.at + modelEvery - Date.now();
    if (!now && wait > 0) {
      asking = setTimeout(() => model(), wait);
      return;
    }
    if (!s.ranked().sorted.length) s.noImportance = "Too few trials have completed to tell.";
    if (asked.position === s.table.position || !s.ranked().sorted.length) return;
    asked = { at: Date.now(), position: s.table.position };
    await beliefs(s, signal);
    if (signal.aborted) return;
    if (shown() === "parameters") for (const v of [views.slices, views.contour]) quietly(v.update());
    if (shown() !== "trials") views.importances.update();
    if (shown() === "overview" && !several && s.anything()) quietly(views.answer.update());
    if (s.importances) views.parallel.redraw();
    facts();
  }

  // Changes: few are shown at once, and a large study loads less often.
  let heard = /** @type {any} */ (null); // the study as it was last sent
  let busy = false;
  let again = false;
  let took = 0;
  async function refresh() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    const begin = performance.now();
    try {
      const [before, anything] = [s.table.n, s.anything()];
      if (heard) s.info = heard;
      else s.info = await call("GetStudy", { name: `studies/${name}` }, signal);
      heard = null;
      await s.load(signal, true);
      facts();
      if (!before || anything !== s.anything()) show();
      else update();
      model();
    } catch (e) {
      if (!(e instanceof APIError) && !signal.aborted) throw e;
    } finally {
      took = performance.now() - begin;
      setTimeout(() => {
        busy = false;
        if (again) {
          again = false;
          if (!signal.aborted) refresh();
        }
      }, Math.max(700, 4 * took, s.changed && s.changed.length > manyChanges ? 3000 : 0));
    }
  }

  addEventListener("hashchange", show, { signal });
  facts();
  show();
  model(true);
  follow(name, () => s.table, (now) => {
    heard = now;
    refresh();
  }, (what, message) => {
    live(what);
    if (what !== "ended") return;
    for (const e of [head, told, nav]) e.remove(); // they are of a study that is no more
    place.replaceChildren(failure(new APIError(404, { message: message ?? "the study was deleted" }), retry));
  }, signal);
}
