// @ts-check
// Several studies beside each other.

import { call, loadColumns } from "./api.js";
import { column, objectives } from "./columns.js";
import { count, duration, exactly, h, number, quote, state, studyURL, trialStateNames, trialURL } from "./dom.js";
import { figure } from "./figure.js";
import { bestSoFar, lineChart } from "./lines.js";
import { failure, skeleton } from "./states.js";

/** mostStudies is how many studies the page compares. */
export const mostStudies = 8;
const colours = ["--accent", "--best", "--third", "--warn"];
const COMPLETED = trialStateNames.indexOf("completed");

/** compareURL is the address of a comparison. */
export const compareURL = (/** @type {string[]} */ names) => `/compare?${names.map((n) => `study=${encodeURIComponent(n)}`).join("&")}`;

/** compare shows the studies that the address names until the signal. */
export async function compare(/** @type {HTMLElement} */ main, /** @type {AbortSignal} */ signal) {
  document.title = "Compare · BKB Tuner";
  const names = [...new Set(new URLSearchParams(location.search).getAll("study"))].slice(0, mostStudies);
  const place = h("div", { class: "view" }, skeleton(8));
  main.replaceChildren(h("h1", {}, "Compare studies"), place);
  if (!names.length) {
    place.replaceChildren(h("section", { class: "card empty-page" }, h("h2", {}, "No study is chosen"), h("p", {}, "Choose studies in the ", h("a", { href: "/" }, "list"), ".")));
    return;
  }
  let all = /** @type {{name: string, info: any, table: import("./columns.js").Table}[]} */ ([]);
  try {
    all = await Promise.all(names.map(async (name) => {
      const [info, table] = await Promise.all([call("GetStudy", { name: `studies/${name}` }, signal), loadColumns(name, ["started", "ended", "cost"], 0, signal, true)]);
      return { name, info, table };
    }));
  } catch (e) {
    if (!signal.aborted) place.replaceChildren(failure(e, () => compare(main, signal), "Ask an admin for a token with the scope read or with these studies."));
    return;
  }
  const shared = [...new Set(all.flatMap((s) => s.info.spec.objectives.map((/** @type {any} */ o) => o.name)))];
  shared.sort((a, b) => all.filter((s) => has(s, b)).length - all.filter((s) => has(s, a)).length);
  function has(/** @type {any} */ s, /** @type {string} */ name) {
    return s.info.spec.objectives.some((/** @type {any} */ o) => o.name === name);
  }
  const chart = lineChart("Best so far", signal);
  const choice = h("select", { "aria-label": "Objective", onchange: () => draw() }, shared.map((n) => h("option", { value: n }, n)));
  const by = h("select", { "aria-label": "Horizontal axis", onchange: () => draw() }, [["trial", "completed trials"], ["time", "hours since the creation"], ["spent", "hours of trials"]].map(([v, t]) => h("option", { value: v }, t)));
  const log = h("input", { type: "checkbox", onchange: () => draw(log.checked) });
  const legend = h("p", { class: "hint" });
  const rows = h("tbody");

  /** of are the results of a study in the order they came, with the number of the best trial. */
  function of(/** @type {typeof all[0]} */ s) {
    const k = s.info.spec.objectives.findIndex((/** @type {any} */ o) => o.name === choice.value);
    const maximize = k >= 0 && s.info.spec.objectives[k].direction === "DIRECTION_MAXIMIZE";
    if (k < 0) return { maximize, points: [], best: -1, value: NaN, completed: 0 };
    const [states, feasible, values, started, ended] = [column(s.table, "state"), column(s.table, "feasible"), objectives(s.table)[k].data, column(s.table, "started"), column(s.table, "ended")];
    const done = Uint32Array.from(values.keys()).filter((i) => states[i] === COMPLETED && values[i] === values[i]).sort((a, b) => ended[a] - ended[b] || a - b);
    const keeping = !feasible || !feasible.includes(1) ? () => true : (/** @type {number} */ i) => feasible[i];
    const created = Date.parse(s.info.createTime) / 1000;
    const sign = maximize ? -1 : 1;
    let [n, spent, best] = [0, 0, -1];
    const points = Array.from(done, (i) => {
      n++;
      spent += Math.max(0, ended[i] - started[i]) || 0;
      if (keeping(i) && (best < 0 || sign * values[i] < sign * values[best])) best = i;
      return /** @type {[number, number]} */ ([by.value === "time" ? Math.max(0, ended[i] - created) / 3600 : by.value === "spent" ? spent / 3600 : n, keeping(i) ? values[i] : NaN]);
    });
    return { maximize, points, best, value: best < 0 ? NaN : values[best], completed: n, spent };
  }

  function draw(/** @type {boolean|undefined} */ want = undefined) {
    if (want !== undefined) log.dataset.set = "1";
    const found = all.map(of);
    const lines = all.flatMap((s, i) => {
      const line = bestSoFar(found[i].points, found[i].maximize);
      return line.x.length ? [{ name: s.name, href: studyURL(s.name), ...line, colour: colours[i % colours.length], dash: i < colours.length ? undefined : [6, 4], width: 2, stepped: true }] : [];
    });
    const sc = chart.draw(lines, { maximize: found.some((f) => f.maximize), log: want ?? (log.dataset.set ? log.checked : undefined), x: by.value === "trial" ? "trial" : "hour", whole: by.value === "trial" });
    log.checked = sc.log;
    log.disabled = !(sc.low > 0);
    legend.replaceChildren(...lines.flatMap((l) => [h("span", { class: `key line${l.dash ? " dashed" : ""}`, style: { "background-color": `var(${l.colour})` } }), l.name]));
    rows.replaceChildren(...all.map((s, i) => {
      const f = found[i];
      const component = s.info.spec.proposer?.name || "bkb";
      return h("tr", {}, h("th", { scope: "row" }, h("a", { href: studyURL(s.name) }, s.name)), h("td", {}, state(s.info.state)), h("td", { class: "num" }, count(s.table.n)), h("td", { class: "num" }, count(f.completed)),
        h("td", { class: "num" }, f.best < 0 ? "–" : [h("strong", {}, exactly(f.value)), " in ", h("a", { href: trialURL(s.name, f.best) }, `#${count(f.best)}`)]), h("td", { class: "num" }, f.spent ? duration(f.spent) : "–"),
        h("td", { class: "num" }, s.info.cost ? number(s.info.cost, 4) : "–"), h("td", {}, component), h("td", {}, s.info.spec.pruner?.name || "none"));
    }));
  }

  const table = () => [["study", "trials", "completed", choice.value, "best trial", "proposer", "pruner"], ...all.map((s) => {
    const f = of(s);
    return [s.name, s.table.n, f.completed, f.value, f.best < 0 ? "" : f.best, s.info.spec.proposer?.name ?? "", s.info.spec.pruner?.name ?? ""];
  })];
  const cli = `tuner studies ${names.map(quote).join(" ")}`;
  place.replaceChildren(
    figure({ title: "Best so far", name: "compare-history", wide: true, canvas: chart.canvas, cli, tools: [shared.length > 1 && h("label", {}, "objective ", choice), h("label", {}, log, " log"), h("label", {}, "x ", by)].filter(Boolean), body: h("div", {}, chart.element, legend), rows: table }),
    figure({ title: "Studies", name: "compare-studies", wide: true, cli, rows: table, body: h("div", { class: "table-frame", tabindex: "0", role: "region", "aria-label": "Studies compared" }, h("table", { class: "studies" }, h("caption", { class: "sr" }, "Studies compared"),
      h("thead", {}, h("tr", {}, ["study", "state", "trials", "completed", "best", "time of trials", "cost", "proposer", "pruner"].map((t, i) => h("th", { scope: "col", class: i > 1 && i < 7 ? "num" : "" }, t)))), rows)) }));
  draw();
}
