// @ts-check
// All trials as a table. Only the rows in view are elements.

import { count, exactly, h, quote, trialStateNames, trialURL } from "./dom.js";
import { column, exact, INACTIVE, limited, objectives, parameters } from "./columns.js";
import { beside, mostTrials } from "./beside.js";
import { figure } from "./figure.js";

const rowHeight = 30;

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

  function update() {
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
