// @ts-check
// The page of a trial.

import { APIError, call, follow, loadColumns, serverNow } from "./api.js";
import { coordinate, parameters } from "./columns.js";
import { duration, exactly, h, number, quote, state, trialURL, valueOf } from "./dom.js";
import { again, notes, stopButton, stopNote } from "./actions.js";
import { figure } from "./figure.js";
import { lineChart } from "./lines.js";
import { loadReports, thin } from "./running.js";
import { failure, skeleton } from "./states.js";

/** trial shows a trial until the signal. */
export async function trial(/** @type {HTMLElement} */ main, /** @type {string} */ study, /** @type {number} */ n, /** @type {AbortSignal} */ signal, /** @type {(text: string) => void} */ live) {
  document.title = `Trial ${n} of ${study} · BKB Tuner`;
  const name = `studies/${study}/trials/${n}`;
  const place = h("div", { class: "view trial" }, skeleton(8));
  main.replaceChildren(h("h1", {}, `Trial ${n} of ${study}`), place);
  let t = /** @type {any} */ (null);
  let s = /** @type {any} */ (null);
  let columns = /** @type {any[]} */ ([]);
  let axes = /** @type {Map<string, any>} */ (new Map());
  let position = 0;
  const load = async () => {
    try {
      [t, s] = await Promise.all([call("GetTrial", { name }, signal), call("GetStudy", { name: `studies/${study}` }, signal)]);
      position = Number(s.position ?? 0);
      await draw();
    } catch (e) {
      if (!signal.aborted) place.replaceChildren(failure(e, load, "Ask an admin for a token with the scope read or with this study."));
    }
  };
  await load();
  if (!t || signal.aborted) return;
  loadColumns(study, [], 0, signal).then((table) => {
    columns = parameters(table);
    axes = new Map(columns.map((c) => [c.name, c.axis]));
    draw();
  }).catch(() => {});
  if (t.state === "TRIAL_STATE_RUNNING" || t.state === "TRIAL_STATE_QUEUED") {
    let due = 0;
    follow(study, () => ({ uid: s.uid, position }), (now) => {
      position = Number(now.position);
      clearTimeout(due);
      due = setTimeout(() => !signal.aborted && !document.querySelector("dialog") && load(), 700);
    }, (what, message) => {
      live(what);
      if (what === "ended") place.replaceChildren(failure(new APIError(404, { message: message ?? "the study was deleted" }), load));
    }, signal);
  }

  async function draw() {
    const config = Object.entries(t.config ?? {}).sort();
    const inactive = [...axes.keys()].filter((k) => !t.config?.[k]);
    const configuration = figure({
      title: "Configuration", name: `${study}-${n}-configuration`, cli: `tuner trials ${quote(study)} --first ${n} --limit 1 -f json`,
      rows: () => [["parameter", "value"], ...config.map(([k, v]) => [k, valueOf(v)])],
      body: h("div", {}, h("table", { class: "config" }, h("caption", { class: "sr" }, "Configuration"), h("tbody", {}, config.map(([k, v]) => h("tr", {}, h("th", { scope: "row" }, k), h("td", {}, exactly(valueOf(v))), h("td", { class: "range-cell" }, mark(axes.get(k), valueOf(v))))))),
        inactive.length ? h("p", { class: "hint" }, `Inactive: ${inactive.join(", ")}.`) : ""),
    });
    const predicted = t.suggestion?.mean ?? [];
    const outcome = t.outcome?.metrics ?? {};
    const rows = s.spec.objectives.map((/** @type {any} */ o, /** @type {number} */ k) => {
      const got = outcome[o.name]?.values ?? [];
      const mean = got.length ? got.reduce((/** @type {number} */ a, /** @type {any} */ b) => a + Number(b), 0) / got.length : NaN;
      const [m, sd] = [predicted[k] ?? NaN, t.suggestion?.stdDev?.[k] ?? NaN];
      return [o.name, Number(m), Number(sd), mean, mean - m];
    });
    const others = Object.entries(outcome).filter(([k]) => !s.spec.objectives.some((/** @type {any} */ o) => o.name === k));
    const came = figure({
      title: "Predicted and measured", name: `${study}-${n}-outcome`, rows: () => [["objective", "predicted mean", "predicted sd", "measured", "difference"], ...rows],
      body: h("div", {}, h("table", { class: "outcome" }, h("caption", { class: "sr" }, "Predicted and measured"), h("thead", {}, h("tr", {}, ["objective", "predicted", "measured", "difference"].map((x) => h("th", { scope: "col" }, x)))),
        h("tbody", {}, rows.map((/** @type {any[]} */ [k, m, sd, got, z]) => h("tr", {}, h("th", { scope: "row" }, k), h("td", {}, Number.isNaN(m) ? "no model yet" : `${number(m, 4)} ± ${number(sd, 2)}`), h("td", {}, h("strong", {}, exactly(got))), h("td", {}, number(z, 3)))),
          others.map(([k, m]) => h("tr", {}, h("th", { scope: "row" }, k), h("td", {}, ""), h("td", {}, /** @type {any} */ (m).values.map((/** @type {any} */ v) => exactly(Number(v))).join(", ")), h("td", {}, ""))))),
      ),
    });
    const why = t.outcome?.message ? h("section", { class: "figure wide why", "aria-labelledby": "why" }, h("h2", { id: "why" }, `Why it ${{ TRIAL_STATE_FAILED: "failed", TRIAL_STATE_PRUNED: "was pruned", TRIAL_STATE_INFEASIBLE: "is infeasible" }[/** @type {string} */ (t.state)] ?? "ended"}`), h("pre", { tabindex: "0", role: "region", "aria-label": "Message" }, t.outcome.message)) : "";
    const took = t.startTime ? ((t.endTime ? Date.parse(t.endTime) : serverNow()) - Date.parse(t.startTime)) / 1000 : NaN;
    const facts = /** @type {[string, any][]} */ ([
      ["state", [state(t.state), t.outcome?.reason ? ` ${t.outcome.reason.replace("FAIL_REASON_", "").toLowerCase()}` : ""]],
      ["worker", t.worker || "unnamed"], [t.endTime ? "took" : "since", Number.isFinite(took) ? duration(took) : "–"], ["epoch", t.epoch ?? "0"],
      ["origin", (t.origin ?? "").replace("ORIGIN_", "").toLowerCase()],
    ]);
    if (t.suggestion?.phase) facts.push(["phase", t.suggestion.phase], ["seen up to event", number(Number(t.suggestion.seen ?? 0), 9)]);
    if (t.expiries) facts.push(["lease expired", `${t.expiries} times`]);
    if (t.outcome?.cost) facts.push(["cost", number(t.outcome.cost)]);
    if (t.state === "TRIAL_STATE_RUNNING") facts.push(["lease ends", t.leaseDeadline ? `in ${duration((Date.parse(t.leaseDeadline) - serverNow()) / 1000)}` : "–"]);
    const asked = t.attributes?.[stopNote];
    if (asked) facts.push([t.state === "TRIAL_STATE_RUNNING" ? "asked to stop" : "was asked to stop", asked]);
    const curves = await loadReports(name, signal);
    const chart = curves.size ? curve(study, t, n, curves, signal) : null;
    const late = t.lateResults ?? [];
    place.replaceChildren(
      h("div", { class: "study-head" }, h("dl", { class: "facts" }, facts.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v)))),
        h("div", { class: "actions" }, t.state === "TRIAL_STATE_RUNNING" && stopButton(study, t, load, ""), columns.length > 0 && s.state !== "STUDY_STATE_FINISHED" && again(study, s.spec, columns, t, load), n > 0 && h("a", { class: "button", href: trialURL(study, n - 1) }, "← previous"), h("a", { class: "button", href: trialURL(study, n + 1) }, "next →"))),
      why, configuration, came, chart?.element ?? "",
      notes({ name, attributes: t.attributes ?? {}, changed: load, scope: "worker" }),
      late.length ? h("section", { class: "figure" }, h("h2", {}, "Late results"), h("p", { class: "hint" }, "Outcomes told by workers that had lost the trial to another. They are not the trial's."), h("ul", {}, late.map((/** @type {any} */ l) => h("li", {}, `epoch ${l.epoch}: ${Object.entries(l.outcome?.metrics ?? {}).map(([k, m]) => `${k} ${(/** @type {any} */ (m).values ?? []).join(", ")}`).join("; ")}`)))) : "");
    chart?.draw();
  }
}

/** mark shows where a value lies in the range of its parameter. */
function mark(/** @type {any} */ axis, /** @type {any} */ v) {
  const u = axis ? coordinate(axis, v) : NaN;
  if (Number.isNaN(u)) return "";
  return h("span", { class: "slider", title: `${Math.round(100 * u)} % of the range` }, h("span", { style: { left: `${100 * u}%` } }));
}

const colours = ["--accent", "--best", "--third", "--muted"];

/** curve draws what a trial reported since it began last. */
function curve(/** @type {string} */ study, /** @type {any} */ t, /** @type {number} */ n, /** @type {Map<string, {epoch: number, step: number, value: number}[]>} */ curves, /** @type {AbortSignal} */ signal) {
  const chart = lineChart("Reports", signal, 240);
  const names = [...curves.keys()].slice(0, colours.length);
  const lines = names.map((name, i) => {
    const points = thin((curves.get(name) ?? []).filter((p) => p.epoch === (t.epoch ?? 0)));
    return { name, x: points.map((p) => p.step), y: points.map((p) => p.value), colour: colours[i], width: 2 };
  });
  const earlier = [...curves.values()].some((c) => c.some((p) => p.epoch !== (t.epoch ?? 0)));
  const element = figure({
    title: "Reports", name: `${study}-${n}-reports`, wide: true, canvas: chart.canvas,
    hint: h("span", {}, names.map((k, i) => h("span", { class: "legend" }, h("span", { class: "key line", style: { "background-color": `var(${colours[i]})` } }), k)), curves.size > names.length ? ` · ${curves.size - names.length} more metrics are in the table` : "", earlier ? ` · the lines begin with epoch ${t.epoch}, and the table has earlier epochs` : ""),
    body: chart.element, rows: () => [["metric", "epoch", "step", "value"], ...[...curves].flatMap(([k, c]) => c.map((p) => [k, p.epoch, p.step, p.value]))],
  });
  return { element, draw: () => chart.draw(lines.filter((l) => l.x.length), { maximize: false, x: "step", y: names.length === 1 ? names[0] : "value", whole: true }) };
}
