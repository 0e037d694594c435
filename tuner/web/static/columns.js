// @ts-check
// Trials as columns. Row i is trial i. Parameters are coordinates in 16 bits, and their
// axis says how a coordinate reads.

/** INACTIVE is the coordinate of a parameter that a trial does not have. */
export const INACTIVE = 65535;
export const TOP = 65534;

const types = /** @type {Record<string, any>} */ ({ u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i64: BigInt64Array, f64: Float64Array });

/**
 * @typedef {{name: string, type: string, offset: number, labels?: string[], axis?: any, data: any}} Column
 * @typedef {{uid: number, n: number, rows: number, position: number, columns: Column[]}} Table
 */

/** decode reads what the server sends. @returns {Table} */
export function decode(/** @type {ArrayBuffer} */ buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  for (const c of head.columns) {
    c.data = new types[c.type](buffer, 4 + length + c.offset, head.rows);
    if (!c.axis?.labels) continue;
    c.axis.brief = brief(c.axis.labels);
    for (const t of c.axis.ticks ?? []) t.label = c.axis.brief[c.axis.labels.indexOf(t.label)] ?? t.label;
  }
  return head;
}

/** brief leaves out of long words how all of them begin and end. */
export function brief(/** @type {string[]} */ words) {
  const least = Math.min(...words.map((w) => w.length));
  if (words.length < 2 || least < 16) return words;
  let [from, to] = [0, 0];
  while (from < least && words.every((w) => w[from] === words[0][from])) from++;
  while (to < least - from && words.every((w) => w.at(-1 - to) === words[0].at(-1 - to))) to++;
  const [before, after] = [from > 6 ? from - 2 : 0, to > 6 ? to - 2 : 0];
  return words.map((w) => `${before ? "…" : ""}${w.slice(before, w.length - after)}${after ? "…" : ""}`);
}

/**
 * merge puts changed rows into a table. It returns null if they belong to another study, or
 * leave rows of this one unknown.
 * @returns {Table|null}
 */
export function merge(/** @type {Table} */ t, /** @type {Table} */ changes) {
  const numbers = column(changes, "number");
  if (changes.uid !== t.uid || changes.n < t.n) return null;
  if (!numbers && changes.rows !== changes.n) return changes.rows === 0 ? { ...t, position: changes.position } : null;
  const columns = t.columns.map((c) => {
    const from = column(changes, c.name);
    let data = c.data;
    if (changes.n > t.n) {
      data = new types[c.type](changes.n);
      data.set(c.data);
    }
    let labels = c.labels;
    if (from && !numbers) [data, labels] = [from, changes.columns.find((x) => x.name === c.name)?.labels]; // all trials
    else if (from) {
      // The codes of names may differ from call to call.
      const names = changes.columns.find((x) => x.name === c.name)?.labels;
      const codes = names?.map((name) => {
        const k = labels?.indexOf(name) ?? -1;
        return k < 0 ? (labels = [...(labels ?? []), name]).length - 1 : k;
      });
      for (let k = 0; k < changes.rows; k++) data[numbers[k]] = codes ? codes[from[k]] : from[k];
    }
    return { ...c, labels, data };
  });
  return { ...t, n: changes.n, rows: changes.n, position: changes.position, columns };
}

/** column finds the numbers of a column by its name. */
export const column = (/** @type {Table} */ t, /** @type {string} */ name) => t.columns.find((c) => c.name === name)?.data;

/** under lists the columns whose names begin with a prefix, by the rest of the name. */
const under = (/** @type {Table} */ t, /** @type {string} */ prefix) => t.columns.filter((c) => c.name.startsWith(prefix)).map((c) => ({ ...c, name: c.name.slice(prefix.length) }));
export const parameters = (/** @type {Table} */ t) => under(t, "parameter/");
export const limited = (/** @type {Table} */ t) => under(t, "metric/");
export const objectives = (/** @type {Table} */ t) => under(t, "value/");

/**
 * exact reads the value of a parameter in a trial, "" where it is inactive. The table must have
 * the columns config/, because coordinates are rounded to pixels.
 * @returns {(i: number) => any}
 */
export function exact(/** @type {Table} */ t, /** @type {Column} */ c) {
  const e = t.columns.find((x) => x.name === `config/${c.name}`);
  return (i) => {
    if (!e || c.data[i] === INACTIVE) return "";
    if (e.labels) return e.labels[e.data[i]];
    const n = Number(e.data[i]);
    return Number.isSafeInteger(n) || e.type !== "i64" ? n : e.data[i];
  };
}

/** at is the value at a coordinate between 0 and 1, as a number or a word. It is near, and for drawing alone. */
export function at(/** @type {any} */ axis, /** @type {number} */ u) {
  if (axis.labels) return axis.labels[Math.min(axis.labels.length - 1, Math.floor(u * axis.labels.length))];
  if (!axis.grid) return NaN;
  const x = u * (axis.grid.length - 1);
  const k = Math.min(axis.grid.length - 2, Math.floor(x));
  const v = axis.grid[k] + (x - k) * (axis.grid[k + 1] - axis.grid[k]);
  return axis.kind === "int" ? Math.round(v) : v;
}

/** coordinate is the inverse of at, or NaN. */
export function coordinate(/** @type {any} */ axis, /** @type {any} */ value) {
  if (axis.labels) {
    const k = axis.labels.findIndex((/** @type {string} */ l) => l === String(value) || Number(l) === Number(value));
    return k < 0 ? NaN : (k + 0.5) / axis.labels.length;
  }
  const g = axis.grid;
  const x = Number(value);
  if (!g || Number.isNaN(x)) return NaN;
  if (x <= g[0]) return 0;
  for (let k = 1; k < g.length; k++) if (x <= g[k]) return (k - 1 + (x - g[k - 1]) / (g[k] - g[k - 1])) / (g.length - 1);
  return 1;
}

/** jittered spreads the values of a parameter without numbers over their columns, so that a picture shows how many there are. */
export function jittered(/** @type {Column} */ c, /** @type {number} */ n) {
  const levels = c.axis.levels;
  if (!levels || levels > 256 || !["categorical", "ordinal"].includes(c.axis.kind)) return c.data;
  const out = new Uint16Array(n);
  const width = (0.5 * TOP) / levels;
  let r = 1;
  for (let i = 0; i < n; i++) {
    r = (Math.imul(r, 1664525) + 1013904223) | 0;
    const u = c.data[i];
    out[i] = u === INACTIVE ? u : Math.max(0, Math.min(TOP, u + ((r >>> 16) / 65535 - 0.5) * width));
  }
  return out;
}

/**
 * Scale maps the values of an objective to [0, 1], upwards. It is logarithmic where that
 * shows more. A linear one leaves far values out, and counts them. edge maps them to the ends.
 * @typedef {{log: boolean, low: number, high: number, left: number, u: (v: number) => number, v: (u: number) => number, edge: (v: number) => number, ticks: {u: number, label: string}[]}} Scale
 */

/** quantiles sorts the finite values. */
function sorted(/** @type {Float64Array} */ values) {
  const finite = values.filter((v) => Number.isFinite(v));
  return finite.sort();
}

/** ranks is what the views need to know of an objective. */
export function ranks(/** @type {Float64Array} */ values, /** @type {boolean} */ maximize) {
  const s = sorted(values);
  const n = s.length;
  const top = Math.min(n, Math.max(Math.ceil(n / 100), Math.min(10, Math.ceil(n / 4))));
  const cut = n === 0 ? NaN : maximize ? s[n - top] : s[top - 1];
  return { sorted: s, top, cut, good: (/** @type {number} */ v) => (maximize ? v >= cut : v <= cut) };
}

/** scale chooses the scale for sorted values. @returns {Scale} */
export function scale(/** @type {Float64Array} */ s, /** @type {boolean} */ maximize, /** @type {boolean|undefined} */ log = undefined, all = false) {
  const n = s.length;
  let low = n ? s[0] : 0;
  let high = n ? s[n - 1] : 1;
  log = low > 0 && (log ?? high / low > 10);
  let left = 0;
  if (!log && !all && n > 20) {
    const q = maximize ? s[Math.floor(0.02 * n)] : s[Math.floor(0.98 * (n - 1))];
    const far = maximize ? q - low : high - q;
    const near = maximize ? high - q : q - low;
    if (far > 2 * near && near > 0) {
      if (maximize) low = q - 0.1 * near;
      else high = q + 0.1 * near;
      for (const v of s) if (v < low || v > high) left++;
    }
  }
  if (low === high) {
    const d = Math.abs(low) || 1;
    low -= 0.1 * d;
    high += 0.1 * d;
    if (low <= 0) log = false;
  }
  const f = log ? Math.log10 : (/** @type {number} */ v) => v;
  const a = f(low);
  const k = 1 / (f(high) - a);
  const u = (/** @type {number} */ v) => (f(v) - a) * k;
  const v = (/** @type {number} */ x) => (log ? 10 ** (a + x / k) : a + x / k);
  const edge = (/** @type {number} */ x) => Math.max(0, Math.min(1, u(log ? Math.max(x, low * 1e-3) : x)));
  return { log, low, high, left, u, v, edge, ticks: marks(ticks(low, high, log)).map((m) => ({ u: u(m.x), label: m.label })) };
}

/** marks writes round numbers with the digits by which they differ. */
export function marks(/** @type {number[]} */ all) {
  const step = all.length > 1 ? Math.abs(all[1] - all[0]) : Infinity;
  return all.map((x) => {
    const rounded = Number(x.toPrecision(Math.max(3, Math.min(15, Math.ceil(Math.log10(Math.abs(x) / step)) + 1 || 3))));
    const text = Math.abs(x) >= 1e5 || (x !== 0 && Math.abs(x) < 1e-3) ? rounded.toExponential().replace("e+", "e") : String(rounded);
    return { x, label: text.replaceAll("-", "−") };
  });
}

/** ticks lists about five round numbers. */
export function ticks(/** @type {number} */ low, /** @type {number} */ high, /** @type {boolean} */ log) {
  const out = [];
  if (log) {
    const decades = Math.log10(high / low);
    const steps = decades < 1 ? [1, 1.5, 2, 3, 5, 7] : decades < 3 ? [1, 2, 5] : [1];
    for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++) {
      for (const m of steps) {
        const x = Number(`${m}e${e}`);
        if (x >= low && x <= high) out.push(x);
      }
    }
    const every = Math.ceil(out.length / 6);
    return out.filter((_, i) => i % every === 0);
  }
  const rough = (high - low) / 5;
  const base = 10 ** Math.floor(Math.log10(rough));
  const step = base * ([1, 2, 5, 10].find((m) => m * base >= rough) ?? 10);
  for (let k = Math.ceil(low / step); k * step <= high; k++) out.push(Number((k * step).toPrecision(12)));
  return out;
}
