// @ts-check
// Elements, formats and small parts that all views use. Text from users becomes text
// nodes, never markup.

const SVG = "http://www.w3.org/2000/svg";
const svgTags = new Set(["svg", "path", "line", "circle", "polyline", "text"]);

/**
 * h makes an element. A property that begins with "on" is a listener, and one that is
 * null, undefined or false is left out.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...any} children
 * @returns {any}
 */
export function h(tag, props = {}, ...children) {
  const e = svgTags.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [k, v] of Object.entries(value)) /** @type {any} */ (e).style.setProperty(k, v);
    else if (key === "value" || key === "checked") /** @type {any} */ (e)[key] = value;
    else e.setAttribute(key, value === true ? "" : String(value));
  }
  e.append(...children.flat(2).filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

/** number writes a value in a few digits, without needless zeros. */
export function number(/** @type {number|null|undefined} */ x, digits = 5) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const a = Math.abs(x);
  const text = a !== 0 && (a < 1e-4 || a >= 1e7) ? x.toExponential(digits - 2).replace(/\.?0+e/, "e").replace("e+", "e") : String(Number(x.toPrecision(digits)));
  return text.replace(/^-/, "−");
}

/** exactly writes a value with all its digits, so that it can be copied. */
export function exactly(/** @type {any} */ v) {
  if (typeof v !== "number" || Number.isFinite(v)) return String(v);
  return v !== v ? "–" : v > 0 ? "∞" : "-∞";
}

/** count writes a whole number with separators. */
export const count = (/** @type {number} */ n) => Math.round(n).toLocaleString("en");

/** percent writes a share. */
export const percent = (/** @type {number} */ x) => (x > 0 && x < 0.001 ? "< 0.1 %" : `${Number((100 * x).toFixed(x < 0.1 ? 1 : 0))} %`);

/** duration writes seconds in one or two units. */
export function duration(/** @type {number} */ s) {
  if (!Number.isFinite(s)) return "–";
  s = Math.max(0, s);
  if (s < 0.9995) return `${Math.round(s * 1000)} ms`;
  s = Math.round(s);
  if (s < 60) return `${s} s`;
  const two = (/** @type {number} */ size, /** @type {string} */ unit, /** @type {number} */ small, /** @type {string} */ smaller) => {
    const [n, each] = [Math.round(s / small), size / small];
    return `${Math.floor(n / each)} ${unit}${n % each ? ` ${n % each} ${smaller}` : ""}`;
  };
  return s < 3600 ? two(60, "min", 1, "s") : s < 86400 ? two(3600, "h", 60, "min") : two(86400, "d", 3600, "h");
}

/** ago writes how long ago a time in seconds was, in one unit. */
export const ago = (/** @type {number} */ s) => `${duration(s).split(" ", 2).join(" ")} ago`;

/** studyURL and trialURL are addresses within the page. A file with a study has no page for each trial. */
export const studyURL = (/** @type {string} */ name) => `/studies/${encodeURIComponent(name)}`;
export const trialURL = (/** @type {string} */ name, /** @type {number} */ n) => (document.documentElement.dataset.file ? "#trials" : `${studyURL(name)}/trials/${n}`);

/** studyID is the last part of a resource name. */
export const studyID = (/** @type {string} */ name) => name.split("/")[1];

// A shape and a word, so that colour alone says nothing.
const studyStates = /** @type {Record<string, [string, string]>} */ ({
  STUDY_STATE_ACTIVE: ["▶", "active"],
  STUDY_STATE_PAUSED: ["‖", "paused"],
  STUDY_STATE_FINISHED: ["✓", "finished"],
});
const trialStates = /** @type {Record<string, [string, string]>} */ ({
  TRIAL_STATE_QUEUED: ["○", "queued"],
  TRIAL_STATE_RUNNING: ["▶", "running"],
  TRIAL_STATE_COMPLETED: ["●", "completed"],
  TRIAL_STATE_FAILED: ["✕", "failed"],
  TRIAL_STATE_INFEASIBLE: ["⊘", "infeasible"],
  TRIAL_STATE_PRUNED: ["✂", "pruned"],
});

/** valueOf is a value of a configuration of the service. An integer that a number cannot hold is a BigInt. */
export function valueOf(/** @type {any} */ v) {
  if (v.intValue === undefined) return v.stringValue ?? v.boolValue ?? Number(v.floatValue);
  const n = Number(v.intValue);
  return Number.isSafeInteger(n) ? n : BigInt(v.intValue);
}

/** trialStateNames are the words for the numbers in the column state. */
export const trialStateNames = ["", ...Object.values(trialStates).map((s) => s[1])];

/** trialState is the state of a trial by its number in the column state. */
export const trialState = (/** @type {number} */ k) => state(Object.keys(trialStates)[k - 1]);

/** state is a state with its shape. */
export function state(/** @type {string|undefined} */ name) {
  const [shape, word] = studyStates[name ?? ""] ?? trialStates[name ?? ""] ?? ["·", "unknown"];
  return h("span", { class: `state ${word}` }, h("span", { "aria-hidden": "true" }, shape), ` ${word}`);
}

/** copy is a button that copies a text. */
export function copy(/** @type {string} */ text, /** @type {string} */ label) {
  const button = h("button", { type: "button", class: "quiet", "aria-label": label, onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it by hand";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  } }, "Copy");
  return button;
}

/** connected adds to a command how it reaches the studies of this page. */
export function connected(/** @type {string} */ line) {
  const flags = document.querySelector('meta[name="connection"]')?.getAttribute("content")?.replace("{host}", location.hostname);
  if (!flags) return line;
  const [own, ...rest] = line.split(" -- ");
  return [`${own} ${flags}`, ...rest].join(" -- ");
}

/** command is a line for the shell with a button that copies it. */
export function command(/** @type {string} */ line) {
  line = connected(line);
  return h("span", { class: "command" }, h("code", {}, line), copy(line, `Copy the command ${line}`));
}

/** quote makes an argument of a shell. */
export const quote = (/** @type {string} */ s) => (/^[\w./:=@%+-]+$/.test(s) ? s : `'${s.replaceAll("'", `'\\''`)}'`);

/** yaml writes a value in one line of YAML, with quotes where a text could be read as something else. @returns {string} */
export function yaml(/** @type {any} */ v) {
  if (Array.isArray(v)) return `[${v.map(yaml).join(", ")}]`;
  if (v && typeof v === "object") return `{${Object.entries(v).map(([k, x]) => `${yaml(k)}: ${yaml(x)}`).join(", ")}}`;
  return typeof v !== "string" || (/^[A-Za-z_][\w./-]*$/.test(v) && !/^(true|false|yes|no|on|off|null|y|n)$/i.test(v)) ? String(v) : JSON.stringify(v);
}

/** save offers a file for download. */
export function save(/** @type {string} */ name, /** @type {Blob} */ blob) {
  const url = URL.createObjectURL(blob);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** csv writes rows. Text that a spreadsheet could take for a formula gets a quote before it. */
export function csv(/** @type {any[][]} */ rows) {
  const cell = (/** @type {any} */ v) => {
    if (typeof v === "number") return Number.isNaN(v) ? "" : String(v);
    let s = String(v ?? "");
    if (/^[=+\-@\t\r]/.test(s) && Number.isNaN(Number(s))) s = `'${s}`;
    return /[",\n\r]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s;
  };
  return new Blob([rows.map((r) => r.map(cell).join(",") + "\r\n").join("")], { type: "text/csv" });
}

/** css reads a colour of the present scheme as numbers. */
export function css(/** @type {string} */ name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** rgb splits a colour of the form #rrggbb. */
export function rgb(/** @type {string} */ name) {
  const n = parseInt(css(name).slice(1), 16);
  return [(n >> 16) & 255, (n >> 8) & 255, n & 255];
}

/** onScheme calls f when the scheme of colours changes, until the signal. */
export function onScheme(/** @type {() => void} */ f, /** @type {AbortSignal} */ signal) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", f, { signal });
}

/** onWidth calls f when the width of an element changes, until the signal. */
export function onWidth(/** @type {Element} */ e, /** @type {() => void} */ f, /** @type {AbortSignal} */ signal) {
  let width = e.clientWidth;
  const o = new ResizeObserver(() => {
    if (!e.clientWidth || Math.abs(e.clientWidth - width) <= 1) return;
    width = e.clientWidth;
    f();
  });
  o.observe(e);
  signal.addEventListener("abort", () => o.disconnect());
}
