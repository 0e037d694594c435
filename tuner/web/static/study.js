// @ts-check
// The page of a study.

import { APIError, call, follow, loadColumns, offline, serverNow } from "./api.js";
import { column, merge, objectives, ranks } from "./columns.js";
import { count, duration, h, number, state, trialStateNames, trialURL } from "./dom.js";
import { actions } from "./actions.js";
import { beliefs } from "./beliefs.js";
import { cost } from "./cost.js";
import { curves } from "./curves.js";
import { front } from "./front.js";
import { history } from "./history.js";
import { parallel } from "./parallel.js";
import { slices } from "./slices.js";
import { diagnosis, importances } from "./model.js";
import { running } from "./running.js";
import { trials } from "./trials.js";
import { settings } from "./settings.js";
import { failure, skeleton } from "./states.js";

const COMPLETED = trialStateNames.indexOf("completed");
const manyChanges = 500; // trials in one load, from which on the next load waits longer
const modelEvery = 30_000; // milliseconds between two questions that need the model

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
    this.importances = /** @type {any[]|null} */ (null);
    this.importanceNoise = 0;
    this.noImportance = "Loading";
    this.slices = /** @type {Map<string, any>} */ (new Map());
    this.recommended = -1; // the trial that the model recommends
    this.diagnosis = /** @type {any} */ (null);
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
    this.made.clear();
  }

  /** need loads further columns. */
  async need(/** @type {string[]} */ names) {
    const missing = names.filter((n) => !this.extra.includes(n) && !this.table.columns.some((c) => c.name === n || (n.endsWith("/") && c.name.startsWith(n))));
    if (!missing.length) return;
    this.extra.push(...missing);
    await this.load(undefined);
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
  /** breaks tells whether a completed trial breaks a constraint. */
  breaks(/** @type {number} */ i) {
    return column(this.table, "state")[i] === COMPLETED && column(this.table, "feasible")?.[i] === 0; // an older server has no such column
  }
  /** broken is the number of such trials. @returns {number} */
  broken() {
    return this.once("broken", () => {
      let n = 0;
      for (let i = 0; i < this.table.n; i++) if (this.breaks(i)) n++;
      return n;
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
    if (d?.state === "MODEL_STATE_AT_NEXT_ASK") return "the next ask makes the model";
    if (d?.missingResults) return `the model needs ${count(Number(d.missingResults))} more results`;
    return "the mean of the model appears once there is one";
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

const tabs = /** @type {[string, string][]} */ ([["overview", "Overview"], ["parameters", "Parameters"], ["trials", "Trials"], ["curves", "Curves"], ["model", "Model"], ["front", "Front"], ["cost", "Cost"], ["settings", "Settings"]]);

/** study shows a study until the signal. */
export async function study(/** @type {HTMLElement} */ main, /** @type {string} */ name, /** @type {AbortSignal} */ signal, /** @type {(text: string) => void} */ live) {
  document.title = `${name} · BKB Tuner`;
  const s = new Study(name);
  const head = h("div", { class: "study-head" });
  const nav = h("nav", { class: "tabs", "aria-label": "Views of the study" }, tabs.map(([id, title]) => h("a", { href: `#${id}`, hidden: id === "front" }, title)));
  const place = h("div", { class: "view" }, skeleton(10));
  main.replaceChildren(h("h1", {}, name), head, nav, place);
  const retry = () => study(main, name, signal, live);
  try {
    [s.info] = await Promise.all([call("GetStudy", { name: `studies/${name}` }, signal), s.load(signal)]);
  } catch (e) {
    if (!signal.aborted) place.replaceChildren(failure(e, retry, "Ask an admin for a token with the scope read or with this study."));
    return;
  }

  const views = {
    history: history(s, signal), running: running(s, signal, () => refresh()), importances: importances(s), slices: slices(s, signal),
    parallel: parallel(s, signal, () => shown() === "trials" && views.trials.update()),
    trials: trials(s, () => ({ pass: views.parallel.selection(), text: views.parallel.describe() })),
    diagnosis: diagnosis(s, signal), front: front(s, signal), settings: settings(s, () => refresh()),
    curves: curves(s, signal), cost: cost(s, signal),
  };
  const several = s.info.spec.objectives.length > 1;
  nav.querySelector("[href='#front']")?.toggleAttribute("hidden", !several);
  const pages = /** @type {Record<string, {make: () => any[], update: () => any}>} */ ({
    overview: { make: () => [views.history.element, h("div", { class: "side" }, views.importances.element, views.running.element), views.parallel.element], update: () => [views.history.update(), views.importances.update(), views.parallel.update(), quietly(views.running.update())] },
    parameters: { make: () => [views.parallel.element, views.slices.element], update: () => [views.parallel.update(), views.slices.update()] },
    trials: { make: () => views.trials.elements, update: () => quietly(s.need(["config/"]).then(views.trials.update)) },
    model: { make: () => [views.diagnosis.element, views.importances.element], update: () => [quietly(views.diagnosis.update()), views.importances.update()] },
    curves: { make: () => [views.curves.element], update: () => quietly(views.curves.update()) },
    cost: { make: () => views.cost.elements, update: () => quietly(views.cost.update()) },
    ...(several && { front: { make: () => [views.front.element], update: () => views.front.update() } }),
    settings: { make: () => [views.settings.element], update: () => views.settings.update() },
  });
  const shown = () => (pages[location.hash.slice(1)] ? location.hash.slice(1) : "overview");
  const quietly = (/** @type {Promise<any>} */ p) => p.catch((e) => signal.aborted || e instanceof APIError || console.error(e));

  function show() {
    for (const a of nav.children) {
      if (a.getAttribute("href") === `#${shown()}`) a.setAttribute("aria-current", "page");
      else a.removeAttribute("aria-current");
    }
    place.className = `view ${shown()}`;
    place.replaceChildren(...(s.table.n || shown() === "settings" ? pages[shown()].make() : [nothing()]));
    if (s.table.n || shown() === "settings") pages[shown()].update();
  }
  const nothing = () => h("section", { class: "card empty-page" }, h("h2", {}, "No trial yet"), h("p", {}, "A worker asks for a configuration, runs it, and tells the result. Start one with"), h("p", {}, h("code", {}, `tuner run ${name} -- ./train.sh`)), h("p", {}, "or ask for one configuration with"), h("p", {}, h("code", {}, `tuner ask ${name}`)));

  const act = actions(s, () => refresh(), signal);
  function facts() {
    const i = s.info;
    const n = (/** @type {string} */ k) => Number(i[k] ?? 0);
    const best = s.best();
    const max = Number(i.spec.maxTrials ?? 0);
    const items = /** @type {[string, any][]} */ ([
      ["state", [state(i.state), i.finishDetail ? ` ${i.finishDetail}` : ""]],
      ["trials", max ? `${count(s.table.n - n("added"))} of ${count(max)}${n("added") ? ` and ${count(n("added"))} added` : ""}` : count(s.table.n)],
      ["running", count(n("running"))],
    ]);
    if (n("queued")) items.push(["queued", count(n("queued"))]);
    for (const k of ["failed", "infeasible", "pruned"]) if (n(k)) items.push([k, count(n(k))]);
    if (best >= 0 && i.spec.objectives.length === 1) items.push([`best ${s.objective().name}`, [h("strong", {}, number(s.values()[best], 6)), " in ", h("a", { href: trialURL(name, best) }, `#${count(best)}`)]]);
    if (s.recommended >= 0 && i.spec.objectives.length === 1) items.push(["recommended", s.recommended === best ? "the same" : h("a", { href: trialURL(name, s.recommended), title: "The best by the mean of the model, which noise deceives less" }, `#${count(s.recommended)}`)]);
    if (i.cost) items.push(["cost", number(i.cost, 4)]);
    if (i.lastToldTime) items.push(["last result", `${duration((serverNow() - Date.parse(i.lastToldTime)) / 1000)} ago`]);
    const choose = i.spec.objectives.length > 1 && h("label", {}, "objective ", h("select", { onchange: (/** @type {any} */ e) => {
      s.chosen = e.target.selectedIndex;
      asked.position = -1;
      facts();
      pages[shown()].update();
      model(true);
    } }, i.spec.objectives.map((/** @type {any} */ o, /** @type {number} */ k) => h("option", { selected: k === s.chosen }, o.name))));
    const focused = head.contains(document.activeElement) ? /** @type {any} */ (document.activeElement).textContent : null;
    head.replaceChildren(h("dl", { class: "facts" }, items.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v)))), choose || "", offline ? "" : act.buttons());
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
    if (shown() === "parameters") views.slices.update();
    if (shown() !== "trials") views.importances.update();
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
      const before = s.table.n;
      if (heard) s.info = heard;
      else s.info = await call("GetStudy", { name: `studies/${name}` }, signal);
      heard = null;
      await s.load(signal, true);
      facts();
      if (!before) show();
      else pages[shown()].update();
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
    for (const e of [head, nav]) e.remove(); // they are of a study that is no more
    place.replaceChildren(failure(new APIError(404, { message: message ?? "the study was deleted" }), retry));
  }, signal);
}
