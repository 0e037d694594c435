// @ts-check
// All trials as a table, of which only the rows in view are elements, and some of them beside
// each other.

import { count, exactly, h, quote, trialStateNames, trialURL } from "./dom.js";
import { column, exact, INACTIVE, limited, objectives, parameters } from "./columns.js";
import { figure } from "./figure.js";

const rowHeight = 30;
/** mostTrials is how many trials the page compares. */
const mostTrials = 8;

/**
 * @param {import("./study.js").Study} s
 * @param {() => {pass: Uint8Array|null, text: string}} selection of the parallel coordinates
 */
export function trials(s, selection) {
  const head = h("tr", { "aria-rowindex": "1" });
  const body = h("tbody");
  const table = h("table", { class: "trials" }, h("caption", { class: "sr" }, "Trials of the study"), h("thead", {}, head), body);
  const frame = h("div", { class: "scroller", tabindex: "0", role: "group", "aria-label": "List of trials" }, table);
  const status = h("p", { class: "readout", role: "status" });
  const jump = h("input", { type: "text", inputmode: "numeric", size: "7", "aria-label": "Go to the trial with this number", placeholder: "number", onchange: () => {
    const n = Number(jump.value.replace("#", ""));
    const k = order.indexOf(n);
    jump.setAttribute("aria-invalid", String(k < 0));
    if (k < 0) {
      status.textContent = `No trial ${jump.value} is in the list.`;
      return;
    }
    frame.scrollTop = k * rowHeight;
    marked = n;
    draw();
  } });
  const only = h("select", { "aria-label": "Which trials", onchange: () => update() }, ["all", "completed", "running", "failed", "infeasible", "pruned", "queued"].map((w) => h("option", { value: w }, w)));
  let sort = { key: "#", down: true };
  let order = new Uint32Array(0);
  let columns = /** @type {{key: string, title: string, value: (i: number) => any, text?: (i: number) => string, data?: any}[]} */ ([]);
  let marked = -1;
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

  async function update() {
    await s.need(["config/"]);
    const t = s.table;
    const states = column(t, "state");
    columns = [
      { key: "#", title: "trial", value: (i) => i },
      { key: "state", title: "state", value: (i) => states[i] + (s.breaks(i) ? 0.5 : 0), text: (i) => s.stateOf(i) },
      ...objectives(t).map((c) => ({ key: `o:${c.name}`, title: c.name, value: (/** @type {number} */ i) => c.data[i] })),
      ...limited(t).map((c) => ({ key: `m:${c.name}`, title: c.name, value: (/** @type {number} */ i) => c.data[i] })),
      ...parameters(t).map((c) => {
        const read = exact(t, c);
        const value = (/** @type {number} */ i) => (c.data[i] === INACTIVE ? NaN : c.axis.levels ? c.data[i] : read(i));
        return { key: `p:${c.name}`, title: c.name, value, text: (/** @type {number} */ i) => exactly(read(i)) };
      }),
    ];
    const { pass, text } = selection();
    const wanted = trialStateNames.indexOf(only.value);
    const list = [];
    for (let i = 0; i < t.n; i++) if ((!pass || pass[i]) && (wanted < 0 || states[i] === wanted)) list.push(i);
    order = Uint32Array.from(list);
    resort();
    status.textContent = `${count(order.length)} of ${count(t.n)} trials${pass ? `, with ${text}` : ""}`;
    head.replaceChildren(...columns.map((c) => h("th", { scope: "col", "aria-sort": sort.key === c.key ? (sort.down ? "descending" : "ascending") : null },
      h("button", { type: "button", class: "sort", onclick: () => {
        sort = { key: c.key, down: sort.key === c.key ? !sort.down : false };
        update();
      } }, c.title, h("span", { "aria-hidden": "true" }, sort.key === c.key ? (sort.down ? " ↓" : " ↑") : "")))));
    table.setAttribute("aria-rowcount", String(order.length + 1));
    draw();
    for (const i of chosen) if (i >= t.n) chosen.delete(i);
    compared.update();
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

  function draw() {
    const first = Math.max(0, Math.floor(frame.scrollTop / rowHeight) - 5);
    const last = Math.min(order.length, first + Math.ceil((frame.clientHeight || 560) / rowHeight) + 10);
    const spacer = (/** @type {number} */ rows) => rows > 0 && h("tr", { class: "spacer", "aria-hidden": "true" }, h("td", { colspan: columns.length, style: { height: `${rows * rowHeight}px` } }));
    const rows = [];
    for (let k = first; k < last; k++) {
      const i = order[k];
      rows.push(h("tr", { "aria-rowindex": k + 2, class: i === marked ? "marked" : s.breaks(i) ? "muted" : "" }, columns.map((c) => h("td", {}, c.key === "#" ? [h("input", { type: "checkbox", checked: chosen.has(i), "aria-label": `Compare trial ${i}`, "data-compare": i, onchange: (/** @type {any} */ e) => choose(i, e.target) }), " ", h("a", { href: trialURL(s.name, i) }, count(i))] : c.text ? c.text(i) : exactly(c.value(i))))));
    }
    body.replaceChildren(...[spacer(first), ...rows, spacer(order.length - last)].filter(Boolean));
    if (!order.length) body.replaceChildren(h("tr", {}, h("td", { colspan: columns.length, class: "empty" }, "No trial matches.")));
  }
  let due = 0;
  frame.addEventListener("scroll", () => {
    if (!due) due = requestAnimationFrame(() => {
      due = 0;
      draw();
    });
  });

  const element = figure({
    title: "Trials", name: `${s.name}-trials`, wide: true, cli: `tuner trials ${quote(s.name)} -f csv`,
    tools: [h("label", {}, "show ", only), h("label", {}, "go to ", jump)],
    hint: "Tick up to 8 trials to compare them.",
    body: h("div", {}, status, frame),
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
