// @ts-check
// The form for a new study, with a check of the search space while it is written.

import { APIError, call, caller, checkSpace, listMethods, requestID } from "./api.js";
import { command, count, h, number, quote, save, studyURL } from "./dom.js";
import { failure, skeleton } from "./states.js";

const wait = 300; // milliseconds without a key before the space is checked

const example = `parameters:
  lr:        {type: float, low: 1e-5, high: 0.1, scale: log}
  batch:     {type: int, low: 16, high: 512, scale: log}
  optimizer: {type: categorical, values: [sgd, adam]}
  momentum:  {type: float, low: 0, high: 0.99, when: {optimizer: sgd}}
`;

/** options makes the options of a method from key=value pairs or JSON, as the command line does. It throws a text. */
function options(/** @type {string} */ text) {
  text = text.trim();
  if (!text || text.startsWith("{")) return text;
  const out = /** @type {Record<string, string>} */ ({});
  for (const item of text.split(",")) {
    const at = item.indexOf("=");
    if (at < 1) throw `${item} is not key=value`;
    const [key, value] = [item.slice(0, at), item.slice(at + 1)];
    if (key in out) throw `the option ${key} is given twice`;
    out[key] = /^(-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false)$/.test(value) ? value : JSON.stringify(value);
  }
  return `{${Object.keys(out).sort().map((k) => `${JSON.stringify(k)}:${out[k]}`).join(",")}}`;
}

/** limited adds limits of metrics, such as latency <= 10, to options in JSON. It throws a text. */
function limited(/** @type {string} */ json, /** @type {string[]} */ limits) {
  if (!limits.length) return json;
  const all = json ? JSON.parse(json) : {};
  const each = (all.constraints ??= {});
  for (const text of limits) {
    const m = /^(.+?)\s*(<=|>=)\s*(\S+)$/.exec(text);
    if (!m || !Number.isFinite(Number(m[3]))) throw `${text} must be a metric, <= or >=, and a number`;
    (each[m[1]] ??= {})[m[2] === "<=" ? "max" : "min"] = Number(m[3]);
  }
  return JSON.stringify(all);
}

/** seconds reads a duration such as 12h or 1h30m, NaN if it is none. */
export function seconds(/** @type {string} */ text) {
  if (!/^(\d+(\.\d+)?(h|m|s|ms))+$/.test(text)) return NaN;
  const unit = /** @type {Record<string, number>} */ ({ h: 3600, m: 60, s: 1, ms: 0.001 });
  return [...text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s)/g)].reduce((sum, [, n, u]) => sum + Number(n) * unit[u], 0);
}

/** newStudy shows the form until the signal. */
export async function newStudy(/** @type {HTMLElement} */ main, /** @type {AbortSignal} */ signal) {
  document.title = "New study · BKB Tuner";
  main.replaceChildren(h("h1", {}, "New study"), skeleton(10));
  let methods = /** @type {{proposers: {name: string, options?: string[]}[], pruners: {name: string, options?: string[]}[]}} */ ({ proposers: [], pruners: [] });
  try {
    methods = await listMethods(signal);
  } catch (e) {
    if (!signal.aborted) main.replaceChildren(h("h1", {}, "New study"), failure(e, () => newStudy(main, signal)));
    return;
  }
  if (signal.aborted) return;
  const id = requestID(); // one for the form, so that sending it twice makes one study
  const seed = Number(crypto.getRandomValues(new BigUint64Array(1))[0] >> 11n);
  const input = (/** @type {string} */ name, props = {}) => h("input", { type: "text", id: `new-${name}`, autocomplete: "off", spellcheck: "false", ...props });
  const field = (/** @type {string} */ label, /** @type {any} */ e, /** @type {any} */ hint = "") => h("div", { class: "field" }, h("label", { for: e.id }, label), e, typeof hint === "string" ? hint && h("span", { class: "muted" }, hint) : hint);
  const select = (/** @type {string} */ name, /** @type {string[]} */ words) => h("select", { id: `new-${name}` }, words.map((w) => h("option", { value: w }, w)));

  const name = input("name", { "aria-required": "true", placeholder: "digits" });
  const editor = h("textarea", { id: "new-space", rows: "14", spellcheck: "false", wrap: "off", class: "editor", "aria-describedby": "new-space-keys" });
  editor.value = example;
  const objectives = h("div", { class: "fields" });
  const maxTrials = input("max-trials", { inputmode: "numeric" });
  const timeout = input("timeout");
  const maxCost = input("max-cost", { inputmode: "decimal" });
  const lease = input("lease");
  const retries = input("max-retries", { inputmode: "numeric", value: "3" });
  const seedField = input("seed", { inputmode: "numeric", value: String(seed) });
  const metricLimits = input("metric-limits", { placeholder: "latency <= 10, accuracy >= 0.9" });
  const limits = () => metricLimits.value.split(",").map((/** @type {string} */ t) => t.trim()).filter(Boolean);
  const proposer = select("proposer", methods.proposers.map((m) => m.name));
  const proposerOptions = input("proposer-options");
  const pruner = select("pruner", ["none", ...methods.pruners.map((m) => m.name)]);
  const prunerOptions = input("pruner-options");
  const [proposerHint, prunerHint] = [h("span", { class: "muted whole" }), h("span", { class: "muted whole" })];
  const findings = h("div", { class: "findings", role: "status", "aria-live": "polite" });
  const faults = h("div", { role: "status" });
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const same = h("p", { class: "same" });
  const submit = h("button", { type: "submit", class: "primary" }, "Create the study");
  const lacks = caller.role !== "admin" && `Your token has the scope ${caller.role}. This needs the scope admin.`;

  let checked = /** @type {any} */ (null); // the space as it was checked last
  let timer = 0;
  let round = 0;
  let sending = false;
  let tried = false; // what is missing is an error only then

  editor.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
    if (e.key === "Escape") submit.focus();
    if (e.key !== "Tab" || e.shiftKey || e.ctrlKey || e.altKey || e.metaKey) return;
    e.preventDefault();
    editor.setRangeText("  ", editor.selectionStart, editor.selectionEnd, "end");
    editor.dispatchEvent(new Event("input", { bubbles: true }));
  });

  function objective(text = "", maximize = false) {
    const n = objectives.children.length;
    const row = h("div", { class: "field objective" },
      h("select", { "aria-label": `Direction of objective ${n + 1}` }, h("option", { value: "minimize" }, "minimize"), h("option", { value: "maximize", selected: maximize }, "maximize")),
      h("span", { class: "row" }, h("input", { type: "text", "aria-label": `Name of objective ${n + 1}`, value: text, autocomplete: "off", spellcheck: "false" }),
        n > 0 && h("button", { type: "button", class: "quiet", "aria-label": `Remove objective ${n + 1}`, onclick: () => {
          row.remove();
          draw();
        } }, "Remove")));
    objectives.append(row);
  }
  const goals = () => [...objectives.children].map((row) => ({ name: row.querySelector("input")?.value.trim() ?? "", maximize: row.querySelector("select")?.value === "maximize" }));

  /** spec is what the form describes, with what is wrong in it. */
  function spec() {
    const wrong = [];
    const whole = (/** @type {any} */ e, /** @type {string} */ what) => {
      const text = e.value.trim();
      if (/^\d*$/.test(text)) return text;
      wrong.push(`${what}: ${text} must be a whole number from 0.`);
      return "";
    };
    const time = (/** @type {any} */ e, /** @type {string} */ what) => {
      const text = e.value.trim();
      const s = text ? seconds(text) : 0;
      if (Number.isNaN(s)) wrong.push(`${what}: ${text} must be a duration such as 12h or 1h30m.`);
      return s ? `${s}s` : undefined;
    };
    const method = (/** @type {any} */ choice, /** @type {any} */ e) => {
      try {
        return { name: choice.value === "none" ? "" : choice.value, options: (choice === proposer ? limited(options(e.value), limits()) : options(e.value)) || undefined };
      } catch (x) {
        wrong.push(`${choice.value}: ${x}.`);
        return undefined;
      }
    };
    const cost = maxCost.value.trim();
    if (cost && !(Number(cost) >= 0)) wrong.push(`Largest cost: ${cost} must be a number from 0.`);
    const out = {
      space: checked?.space, objectives: goals().map((g) => ({ name: g.name, direction: g.maximize ? "DIRECTION_MAXIMIZE" : "DIRECTION_MINIMIZE" })),
      maxTrials: whole(maxTrials, "Number of trials") || undefined, timeout: time(timeout, "Timeout"), maxCost: Number(cost) || undefined, lease: time(lease, "Lease"),
      maxRetries: Number(whole(retries, "Retries")) || 0, seed: whole(seedField, "Seed") || "0", proposer: method(proposer, proposerOptions),
      ...(pruner.value !== "none" && { pruner: method(pruner, prunerOptions) }),
    };
    const missing = [];
    if (!name.value.trim()) missing.push("The study needs a name.");
    if (goals().some((g) => !g.name)) missing.push("Each objective needs a name.");
    return { out, wrong, missing };
  }
  const ready = (/** @type {string[]} */ wrong, /** @type {string[]} */ missing) => !lacks && !sending && !wrong.length && !missing.length && checked?.space && checked.text === editor.value;

  /** line is the command that makes the same study. */
  function line() {
    const parts = ["tuner create-study", quote(name.value.trim() || "NAME"), "--space space.yaml"];
    for (const g of goals()) if (g.name) parts.push(`--${g.maximize ? "maximize" : "minimize"} ${quote(g.name)}`);
    const given = (/** @type {string} */ flag, /** @type {any} */ e) => e.value.trim() && parts.push(`--${flag} ${quote(e.value.trim())}`);
    for (const text of limits()) parts.push(`--constraint ${quote(text)}`);
    given("max-trials", maxTrials);
    given("timeout", timeout);
    given("max-cost", maxCost);
    given("lease", lease);
    if (retries.value.trim() !== "3") parts.push(`--max-retries ${quote(retries.value.trim() || "0")}`);
    parts.push(`--seed ${quote(seedField.value.trim() || "0")}`);
    const method = (/** @type {string} */ flag, /** @type {any} */ choice, /** @type {any} */ e, /** @type {string} */ usual) => (choice.value !== usual || e.value.trim()) && parts.push(`--${flag} ${quote(choice.value + (e.value.trim() ? `:${e.value.trim()}` : ""))}`);
    method("proposer", proposer, proposerOptions, methods.proposers[0].name);
    if (pruner.value !== "none") method("pruner", pruner, prunerOptions, "");
    return parts.join(" ");
  }

  function draw() {
    const { wrong, missing } = spec();
    const all = tried ? [...missing, ...wrong] : wrong;
    faults.replaceChildren(all.length ? h("ul", { class: "error plain" }, all.map((w) => h("li", {}, w))) : "");
    for (const [list, choice, e, hint] of /** @type {any[]} */ ([[methods.proposers, proposer, proposerOptions, proposerHint], [methods.pruners, pruner, prunerOptions, prunerHint]])) {
      const known = list.find((/** @type {any} */ m) => m.name === choice.value)?.options ?? [];
      e.disabled = !known.length;
      if (e.disabled) e.value = "";
      hint.textContent = known.length ? `name=value, with commas between, or JSON. The names are ${known.join(", ")}.` : choice.value === "none" ? "" : `${choice.value} has no options`;
    }
    if (ready(wrong, missing)) submit.removeAttribute("aria-disabled");
    else submit.setAttribute("aria-disabled", "true");
    same.replaceChildren("The same on the command line ", command(line()));
  }

  function show() {
    const remarks = (/** @type {any[]} */ list, /** @type {string} */ style) => h("ul", { class: `plain ${style}` }, list.map((r) => h("li", {}, r.line ? h("button", { type: "button", class: "quiet", onclick: () => toLine(r.line) }, `line ${r.line}`) : "", " ", r.text)));
    if (checked.failed) return findings.replaceChildren(h("p", { class: "error" }, checked.failed));
    if (checked.faults) return findings.replaceChildren(h("h3", {}, checked.faults.length === 1 ? "One fault" : `${checked.faults.length} faults`), remarks(checked.faults, "error"));
    const names = Object.keys(JSON.parse(checked.space).parameters);
    findings.replaceChildren(
      h("p", {}, checked.size === undefined ? "The space is valid and has a continuous parameter." : `The space is valid and has ${checked.size < 1e7 ? count(checked.size) : number(checked.size, 3)} ${checked.size === 1 ? "configuration" : "configurations"}.`, checked.read ? ` It is read as ${checked.read}.` : ""),
      checked.advice ? [h("h3", {}, "Advice"), remarks(checked.advice, "advice")] : "",
      h("h3", {}, "Some configurations"),
      h("div", { class: "table-frame", tabindex: "0", role: "region", "aria-label": "Some configurations" }, h("table", { class: "samples" }, h("thead", {}, h("tr", {}, names.map((n) => h("th", { scope: "col" }, n)))),
        h("tbody", {}, checked.samples.map((/** @type {any} */ s) => h("tr", {}, names.map((n) => h("td", {}, s[n] ?? h("span", { class: "muted" }, "inactive")))))))));
  }

  function toLine(/** @type {number} */ n) {
    const lines = editor.value.split("\n");
    const from = lines.slice(0, n - 1).reduce((/** @type {number} */ sum, /** @type {string} */ l) => sum + l.length + 1, 0);
    editor.focus();
    editor.setSelectionRange(from, from + (lines[n - 1]?.length ?? 0));
  }

  async function check() {
    const [mine, text] = [++round, editor.value];
    try {
      const got = await checkSpace(text, signal);
      if (mine !== round || signal.aborted) return;
      checked = { ...got, text };
    } catch (e) {
      if (signal.aborted || mine !== round) return;
      if (!(e instanceof APIError)) throw e;
      checked = { failed: e.message, text };
    }
    show();
    draw();
  }

  async function send(/** @type {Event} */ e) {
    e.preventDefault();
    tried = true;
    const { out, wrong, missing } = spec();
    if (!ready(wrong, missing)) {
      draw();
      return;
    }
    sending = true;
    draw();
    try {
      const made = await call("CreateStudy", { requestId: id, studyId: name.value.trim(), spec: out });
      location.assign(studyURL(made.name.split("/")[1]));
    } catch (x) {
      sending = false;
      if (!(x instanceof APIError)) throw x;
      error.hidden = false;
      error.textContent = x.message;
      draw();
    }
  }

  objective("loss");
  main.replaceChildren(h("h1", {}, "New study"), lacks ? h("p", { class: "warn" }, lacks) : "", h("form", { class: "view new-study", onsubmit: send, oninput: (/** @type {Event} */ e) => {
    draw();
    if (e.target !== editor) return;
    clearTimeout(timer);
    timer = setTimeout(check, wait);
  } },
  h("section", { class: "figure", "aria-labelledby": "new-space-title" }, h("div", { class: "figure-head" }, h("h2", { id: "new-space-title" }, h("label", { for: "new-space" }, "Search space")),
    h("div", { class: "tools" }, h("button", { type: "button", class: "quiet", onclick: () => save("space.yaml", new Blob([editor.value], { type: "text/yaml" })) }, "Save as space.yaml"))),
  editor, h("p", { class: "hint" }, "Add ", [["a parameter", "  name: {type: float, low: 0, high: 1}\n"], ["a condition", "  name: {type: float, low: 0, high: 1, when: {optimizer: sgd}}\n"], ["a constraint", "constraints:\n  - lr * batch <= 10\n"]].map(([what, text]) => h("button", { type: "button", class: "quiet", onclick: () => {
    const at = text.startsWith("c") || !editor.value.includes("constraints:") ? editor.value.length : editor.value.indexOf("constraints:");
    editor.setRangeText(editor.value && !editor.value.slice(0, at).endsWith("\n") ? `\n${text}` : text, at, at, "select");
    editor.focus();
    editor.dispatchEvent(new Event("input", { bubbles: true }));
  } }, what))),
  h("p", { class: "hint", id: "new-space-keys" }, "YAML or JSON, also that of Optuna or Katib. Tab inserts spaces, and Escape leaves the field."), findings),
  h("section", { class: "figure", "aria-labelledby": "new-study-title" }, h("h2", { id: "new-study-title" }, "Study"), h("div", { class: "fields" }, field("name", name, "letters a to z, digits, -, _ and dots")),
    h("h3", {}, "Objectives"), objectives, h("button", { type: "button", class: "quiet", onclick: () => {
      objective();
      draw();
    } }, "Add an objective"),
    h("h3", {}, "Limits"), h("div", { class: "fields" }, field("trials", maxTrials, "empty for no limit"), field("timeout", timeout, "such as 12h, empty for no limit"), field("cost", maxCost, "sum of the told costs, empty for no limit"), field("metrics", metricLimits, "a trial that breaks one is infeasible"),
      field("lease", lease, "longest time of a trial without a heartbeat, empty for 1h"), field("retries", retries, "new starts of a trial whose lease expired")),
    h("h3", {}, "Method"), h("div", { class: "fields" }, field("proposer", proposer), field("its options", proposerOptions, proposerHint), field("pruner", pruner), field("its options", prunerOptions, prunerHint), field("seed", seedField)),
    faults, error, same, h("div", { class: "buttons" }, h("a", { class: "button", href: "/" }, "Cancel"), submit))));
  signal.addEventListener("abort", () => clearTimeout(timer));
  draw();
  check();
}
