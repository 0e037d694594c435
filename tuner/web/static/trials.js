// @ts-check
// All trials as a table, of which only the rows in view are elements, and some of them beside
// each other.

import { APIError, call } from "./api.js";
import { count, csv, duration, exactly, h, number, quote, save, trialState, trialStateNames, trialURL, valueOf } from "./dom.js";
import { column, exact, INACTIVE, limited, objectives, parameters } from "./columns.js";
import { figure } from "./figure.js";

const rowHeight = 30;
const rowsInView = 22; // at most
/** mostTrials is how many trials the page compares. */
const mostTrials = 8;
const pageSize = 1000; // trials of one answer, for downloads
const unhappy = ["failed", "infeasible", "pruned"]; // states with a message

/** exactJSON writes what a number of JSON cannot hold as tuner trials does, a large integer only where the browser can. */
function exactJSON(/** @type {string} */ _, /** @type {any} */ v) {
  if (typeof v === "bigint") return /** @type {any} */ (JSON).rawJSON?.(String(v)) ?? String(v);
  return typeof v !== "number" || Number.isFinite(v) ? v : v !== v ? "nan" : v > 0 ? "inf" : "-inf";
}

/** mean is the mean of a metric's values. */
const mean = (/** @type {any} */ v) => (Array.isArray(v) ? v.reduce((a, b) => a + b, 0) / v.length : v);

/** tests are the comparisons that a filter may make. */
const tests = /** @type {Record<string, (a: any, b: any) => boolean>} */ ({ "=": (a, b) => String(a) === String(b) || Number(a) === Number(b), "<": (a, b) => Number(a) < Number(b), ">": (a, b) => Number(a) > Number(b), "<=": (a, b) => Number(a) <= Number(b), ">=": (a, b) => Number(a) >= Number(b) });

/**
 * @typedef {{key: string, title: string, value: (i: number) => any, text: (i: number) => any, cell?: (i: number) => any}} Column
 * @param {import("./study.js").Study} s
 * @param {() => {pass: Uint8Array|null, text: string}} selection of the parallel coordinates
 */
export function trials(s, selection) {
  const head = h("tr", { "aria-rowindex": "1" });
  const body = h("tbody");
  const table = h("table", { class: "trials" }, h("caption", { class: "sr" }, "Trials of the study"), h("thead", {}, head), body);
  const frame = h("div", { class: "scroller", tabindex: "0", role: "group", "aria-label": "List of trials" }, table);
  const status = h("p", { class: "readout", role: "status" });
  const filter = h("input", { type: "search", size: "22", placeholder: "lr<0.01 adam", "aria-label": "Filter by values or words", oninput: () => update() });
  const only = h("select", { "aria-label": "Which trials", onchange: () => update() }, ["all", ...trialStateNames.filter(Boolean)].map((w) => h("option", { value: w }, w)));
  const choice = h("div", { class: "column-choice" });
  const hidden = /** @type {Set<string>} */ (new Set());
  let sort = { key: "#", down: true };
  let order = new Uint32Array(0);
  let columns = /** @type {Column[]} */ ([]);
  let shown = columns;
  const chosen = /** @type {Set<number>} */ (new Set());
  const compared = beside(s, () => [...chosen].sort((a, b) => a - b));

  /** choose adds a trial to those that are compared, or takes it out. */
  function choose(/** @type {number} */ i, /** @type {any} */ box) {
    if (!box.checked) chosen.delete(i);
    else if (chosen.size < mostTrials) chosen.add(i);
    else {
      box.checked = false;
      status.textContent = `At most ${mostTrials} trials can be compared.`;
    }
    compared.update();
  }

  /** all lists the columns. */
  function all() {
    const t = s.table;
    const [states, started, ended] = ["state", "started", "ended"].map((k) => column(t, k));
    const worker = t.columns.find((c) => c.name === "worker"); // an older server sends none
    const of = (/** @type {string} */ key, /** @type {any} */ c) => ({ key: `${key}:${c.name}`, title: c.name, value: (/** @type {number} */ i) => c.data[i], text: (/** @type {number} */ i) => exactly(c.data[i]) });
    return /** @type {Column[]} */ ([
      { key: "#", title: "trial", value: (i) => i, text: String, cell: (i) => [h("input", { type: "checkbox", checked: chosen.has(i), "aria-label": `Compare trial ${i}`, "data-compare": i, onchange: (/** @type {any} */ e) => choose(i, e.target) }), " ", h("a", { href: trialURL(s.name, i) }, count(i))] },
      { key: "state", title: "state", value: (i) => states[i] + (s.breaks(i) ? 0.5 : 0), text: (i) => s.stateOf(i), cell: (i) => (s.breaks(i) ? h("span", { class: "state failed" }, "breaks a constraint") : trialState(states[i])) },
      ...objectives(t).map((c) => of("o", c)),
      ...limited(t).map((c) => of("m", c)),
      { key: "took", title: "duration", value: (i) => ended[i] - started[i], text: (i) => (ended[i] >= started[i] ? duration(ended[i] - started[i]) : "–") },
      ...(worker ? [{ key: "worker", title: "worker", value: (/** @type {number} */ i) => worker.data[i], text: (/** @type {number} */ i) => worker.labels?.[worker.data[i]] ?? "" }] : []),
      { key: "told", title: "message, metrics", value: (i) => states[i], text: () => "", cell: (i) => h("span", { class: "told", "data-told": states[i] ? i : "" }) },
      ...parameters(t).map((c) => {
        const read = exact(t, c);
        return { key: `p:${c.name}`, title: c.name, value: (/** @type {number} */ i) => (c.data[i] === INACTIVE ? NaN : c.axis.levels ? c.data[i] : read(i)), text: (/** @type {number} */ i) => exactly(read(i)) };
      }),
    ]);
  }

  async function update() {
    await s.need(["config/", "started", "ended", "worker", "metric/"]);
    columns = all();
    shown = columns.filter((c) => !hidden.has(c.key));
    const { pass, text } = selection();
    const wanted = trialStateNames.indexOf(only.value);
    const states = column(s.table, "state");
    const [passes, fault] = filtering();
    const list = [];
    for (let i = 0; i < s.table.n; i++) if ((!pass || pass[i]) && (wanted < 0 || states[i] === wanted) && passes(i)) list.push(i);
    order = Uint32Array.from(list);
    resort();
    status.textContent = fault || `${count(order.length)} of ${count(s.table.n)} trials${pass ? `, with ${text}` : ""}`;
    head.replaceChildren(...shown.map((c) => h("th", { scope: "col", "aria-sort": sort.key === c.key ? (sort.down ? "descending" : "ascending") : null },
      h("button", { type: "button", class: "sort", title: c.title, onclick: () => {
        sort = { key: c.key, down: sort.key === c.key ? !sort.down : false };
        update();
      } }, c.title, h("span", { "aria-hidden": "true" }, sort.key === c.key ? (sort.down ? " ↓" : " ↑") : "")))));
    if (choice.childElementCount !== columns.length - 1) choice.replaceChildren(...columns.slice(1).map((c) => h("label", {}, h("input", { type: "checkbox", checked: !hidden.has(c.key), onchange: (/** @type {any} */ e) => {
      if (e.target.checked) hidden.delete(c.key);
      else hidden.add(c.key);
      update();
    } }), " ", c.title)));
    table.setAttribute("aria-rowcount", String(order.length + 1));
    draw();
    for (const i of chosen) if (i >= s.table.n) chosen.delete(i);
    compared.update();
  }

  /** filtering reads the filter: comparisons with a column, and words that any column has. @returns {[(i: number) => boolean, string]} */
  function filtering() {
    const parts = filter.value.split(/\s+/).filter(Boolean).map((/** @type {string} */ part) => {
      const m = /^(.+?)(<=|>=|=|<|>)(.+)$/.exec(part);
      const c = m && columns.find((x) => x.title === m[1]);
      if (m && !c) return part;
      const word = part.toLowerCase();
      return c && m ? (/** @type {number} */ i) => tests[m[2]](c.text(i), m[3]) : (/** @type {number} */ i) => columns.some((x) => String(x.text(i)).toLowerCase().includes(word));
    });
    const fault = parts.find((/** @type {any} */ p) => typeof p === "string");
    filter.setAttribute("aria-invalid", String(Boolean(fault)));
    return fault ? [() => true, `${fault} names no column.`] : [(i) => parts.every((/** @type {any} */ p) => p(i)), ""];
  }

  function resort() {
    const c = columns.find((x) => x.key === sort.key) ?? columns[0];
    const keys = new Float64Array(s.table.n);
    for (const i of order) {
      const v = c.value(i);
      keys[i] = v === v ? v : Infinity; // last, in both directions
    }
    const sign = sort.down ? -1 : 1;
    order.sort((a, b) => (keys[a] === Infinity || keys[b] === Infinity ? (keys[a] === keys[b] ? a - b : keys[a] === Infinity ? 1 : -1) : sign * (keys[a] - keys[b]) || a - b));
  }

  let telling = 0;
  function draw() {
    const first = Math.max(0, Math.floor(frame.scrollTop / rowHeight) - 5);
    const last = Math.min(order.length, first + rowsInView + 10);
    const spacer = (/** @type {number} */ rows) => rows > 0 && h("tr", { class: "spacer", "aria-hidden": "true" }, h("td", { colspan: shown.length, style: { height: `${rows * rowHeight}px` } }));
    const rows = [];
    for (let k = first; k < last; k++) {
      const i = order[k];
      rows.push(h("tr", { "aria-rowindex": k + 2, class: s.breaks(i) ? "muted" : "" }, shown.map((c) => h("td", { title: c.cell ? null : c.text(i) }, c.cell ? c.cell(i) : c.text(i)))));
    }
    body.replaceChildren(...[spacer(first), ...rows, spacer(order.length - last)].filter(Boolean));
    if (!order.length) body.replaceChildren(h("tr", {}, h("td", { colspan: shown.length, class: "empty" }, "No trial matches.")));
    clearTimeout(telling);
    telling = setTimeout(tell, 150);
  }

  /** tell asks for what no column has of the rows in view. */
  async function tell() {
    for (const cell of body.querySelectorAll("[data-told]")) {
      if (!cell.isConnected || cell.dataset.told === "") continue;
      const i = Number(cell.dataset.told);
      const state = trialStateNames[column(s.table, "state")[i]];
      if (!unhappy.includes(state) && state !== "completed") continue;
      try {
        const t = await s.trial(i);
        const known = limited(s.table).map((c) => c.name);
        cell.textContent = [t.message.trim().split("\n").at(-1), ...t.others.filter(([k]) => !known.includes(k)).map(([k, v]) => `${k} ${number(v)}`)].filter(Boolean).join(", ");
        cell.title = t.message;
      } catch (e) {
        if (!(e instanceof APIError)) throw e;
        return;
      }
    }
  }
  let due = 0;
  frame.addEventListener("scroll", () => {
    if (!due) due = requestAnimationFrame(() => {
      due = 0;
      draw();
    });
  });

  /** brief is what the columns know of a trial. */
  async function brief(/** @type {number} */ i) {
    const t = await s.trial(i);
    const values = [...s.info.spec.objectives.map((/** @type {any} */ o, /** @type {number} */ k) => [o.name, t.values[k]]), ...t.others].filter(([, v]) => v === v);
    const time = (/** @type {string} */ k) => (column(s.table, k)[i] > 0 ? new Date(1000 * column(s.table, k)[i]).toISOString() : undefined);
    return { trial: i, state: t.state, config: Object.fromEntries(t.config), values: Object.fromEntries(values), worker: t.worker || undefined, started: time("started"), ended: time("ended") };
  }

  /** records lists the trials in the table as tuner trials does in JSON. A file has the first ones in full. */
  async function records() {
    const wanted = new Set(order);
    const full = new Map();
    let pageToken = "";
    do {
      const page = await call("ListTrials", { parent: `studies/${s.name}`, pageSize, pageToken });
      for (const t of page.trials ?? []) {
        const i = Number(t.number ?? 0);
        if (!wanted.has(i)) continue;
        const o = t.outcome ?? {};
        const metrics = /** @type {[string, any][]} */ (Object.entries(o.metrics ?? {}));
        const errors = metrics.filter(([, m]) => m.stdErr !== undefined).map(([k, m]) => [k, Number(m.stdErr)]);
        full.set(i, { trial: i, state: t.state.replace("TRIAL_STATE_", "").toLowerCase(), reason: o.reason?.replace("FAIL_REASON_", "").toLowerCase(), message: o.message || undefined,
          config: Object.fromEntries(Object.entries(t.config ?? {}).sort().map(([k, v]) => [k, valueOf(v)])), values: Object.fromEntries(metrics.map(([k, m]) => [k, m.values.length === 1 ? Number(m.values[0]) : m.values.map(Number)])),
          stderr: errors.length ? Object.fromEntries(errors) : undefined, cost: Number(o.cost ?? 0) || undefined, attributes: t.attributes, worker: t.worker || undefined, started: t.startTime, ended: t.endTime });
      }
      pageToken = page.nextPageToken ?? "";
    } while (pageToken);
    return Promise.all([...order].sort((a, b) => a - b).map((i) => full.get(i) ?? brief(i)));
  }
  async function rows() {
    const all = /** @type {any[]} */ (await records());
    const keys = (/** @type {string} */ part) => [...new Set(all.flatMap((r) => Object.keys(r[part])))];
    const own = s.info.spec.objectives.map((/** @type {any} */ o) => o.name);
    const parts = [...keys("config").map((k) => ["config", k]), ...[...new Set([...own, ...keys("values")])].map((k) => ["values", k])];
    return [["trial", "state", ...parts.map(([, k]) => k), "worker", "seconds", "message"], ...all.map((r) => [r.trial, r.state, ...parts.map(([part, k]) => mean(r[part][k]) ?? ""), r.worker ?? "", (Date.parse(r.ended) - Date.parse(r.started)) / 1000, r.message ?? ""])];
  }

  const element = figure({
    title: "Trials", name: `${s.name}-trials`, wide: true, cli: `tuner trials ${quote(s.name)} -f csv`,
    tools: [h("label", {}, "filter ", filter), h("label", {}, "show ", only), h("details", { class: "columns" }, h("summary", {}, "Columns"), choice)],
    hint: "Tick up to 8 trials to compare them. The filter takes words and comparisons such as lr<0.01.",
    body: h("div", {}, status, frame),
    downloads: [h("button", { type: "button", class: "quiet", onclick: async () => save(`${s.name}-trials.csv`, csv(await rows())) }, "CSV"),
      h("button", { type: "button", class: "quiet", onclick: async () => save(`${s.name}-trials.json`, new Blob([JSON.stringify(await records(), exactJSON, 1)], { type: "application/json" })) }, "JSON")],
  });
  return { elements: [element, compared.element], update };
}

/**
 * beside compares the chosen trials of a study.
 * @param {import("./study.js").Study} s
 * @param {() => number[]} chosen
 */
function beside(s, chosen) {
  const only = h("input", { type: "checkbox", onchange: () => draw() });
  const place = h("div", { class: "table-frame", tabindex: "0", role: "region", "aria-label": "Trials compared" });

  /** rows has a row for each value, with the trials as columns. */
  function rows() {
    const list = chosen();
    const all = [
      ["state", ...list.map((i) => s.stateOf(i))],
      ...[...objectives(s.table), ...limited(s.table)].map((c) => [c.name, ...list.map((i) => c.data[i])]),
      ...parameters(s.table).map((c) => [c.name, ...list.map(exact(s.table, c))]),
    ];
    return { list, all, differs: (/** @type {any[]} */ r) => r.slice(1).some((v) => v !== r[1] && !(v !== v && r[1] !== r[1])) };
  }

  function draw() {
    const { list, all, differs } = rows();
    element.toggleAttribute("hidden", list.length < 2);
    const shown = only.checked ? all.filter(differs) : all;
    place.replaceChildren(h("table", {}, h("caption", { class: "sr" }, "Trials compared"),
      h("thead", {}, h("tr", {}, h("td"), list.map((i) => h("th", { scope: "col", class: "num" }, h("a", { href: trialURL(s.name, i) }, `#${count(i)}`))))),
      h("tbody", {}, shown.map((r) => h("tr", { class: differs(r) ? "" : "muted" }, h("th", { scope: "row" }, r[0]), r.slice(1).map((v) => h("td", { class: "num" }, exactly(v) || "inactive")))))));
  }

  const element = figure({
    title: "Compare trials", name: `${s.name}-compared`, wide: true, cli: `tuner trials ${quote(s.name)} -f csv`,
    hint: "Rows in which all trials are equal are grey.", tools: [h("label", {}, only, " only differences")],
    rows: () => [["", ...rows().list.map((i) => `#${i}`)], ...rows().all], body: place,
  });
  element.hidden = true;
  return { element, update: draw };
}
