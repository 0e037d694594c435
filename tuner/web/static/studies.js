// @ts-check
// The list of studies.

import { APIError, caller, serverNow, watchStudies } from "./api.js";
import { backupButton } from "./actions.js";
import { compareURL, mostStudies } from "./compare.js";
import { ago, command, count, duration, h, number, studyID, studyURL } from "./dom.js";
import { failure, left, skeleton, studyState } from "./states.js";
import { listStudies } from "./workers.js";

const every = 4000; // milliseconds between two looks at the list where the server sends no changes
const afresh = 300_000; // milliseconds until all studies are listed again, because results of the last hour age

/** studies shows the list until the signal. */
export function studies(/** @type {HTMLElement} */ main, /** @type {AbortSignal} */ signal) {
  document.title = "Studies · BKB Tuner";
  const filter = h("input", { type: "search", id: "filter", placeholder: "filter", "aria-label": "Filter by name", oninput: () => draw() });
  const total = h("span", { class: "muted", role: "status" });
  const together = h("a", { class: "button", hidden: true }, "Compare");
  const chosen = /** @type {Set<string>} */ (new Set());
  const place = h("div", {}, skeleton(6));
  main.replaceChildren(h("div", { class: "page-head" }, h("h1", {}, "Studies"), h("span", { class: "grow" }), filter, total, h("div", { class: "row" }, together, backupButton(), h("a", { class: "button", href: "/workers" }, "Workers"), h("a", { class: "button", href: "/new" }, "New study"))), place);
  let all = /** @type {any[]} */ ([]);
  let sort = { key: "name", down: false };
  let timer = 0;
  let [drawing, drawn] = [0, 0];

  const columns = /** @type {{key: string, title: string, value: (s: any) => any, cell: (s: any) => any, num?: boolean, wide?: boolean}[]} */ ([
    { key: "name", title: "name", value: (s) => s.id, cell: (s) => [s.unread ? "" : h("input", { type: "checkbox", checked: chosen.has(s.id), "aria-label": `Compare ${s.id}`, "data-compare": s.id, onchange: (/** @type {any} */ e) => choose(s.id, e.target.checked) }), " ", h("a", { href: studyURL(s.id) }, s.id)] },
    { key: "state", title: "state", value: (s) => s.state, cell: (s) => (s.unread ? h("span", { class: "warn", title: s.unread }, "✕ not readable") : studyState(s)) },
    { key: "trials", title: "trials", value: (s) => s.total, num: true, cell: (s) => progress(s) },
    { key: "best", title: "best measured", value: (s) => s.bestMeasured?.values?.[0] ?? NaN, num: true, cell: (s) => (s.bestMeasured?.values?.length ? [number(Number(s.bestMeasured.values[0]), 5), " ", h("span", { class: "muted metric", title: s.spec.objectives[0].name }, s.spec.objectives[0].name)] : h("span", { class: "muted" }, (s.spec?.objectives?.length ?? 0) > 1 ? "several objectives" : "–")) },
    { key: "rate", title: "last hour", value: (s) => Number(s.toldLastHour ?? 0), num: true, wide: true, cell: (s) => (s.toldLastHour ? `${count(Number(s.toldLastHour))} ${Number(s.toldLastHour) === 1 ? "result" : "results"}` : "–") },
    { key: "eta", title: "time left", value: (s) => left(s), num: true, wide: true, cell: (s) => (Number.isFinite(left(s)) ? duration(left(s)) : "–") },
    { key: "running", title: "running", value: (s) => Number(s.running ?? 0), num: true, cell: (s) => count(Number(s.running ?? 0)), wide: true },
    { key: "failed", title: "failed", value: (s) => s.failedShare, num: true, wide: true, cell: (s) => (s.failedShare ? `${Math.max(1, Math.round(100 * s.failedShare))} %` : "–") },
    { key: "last", title: "last result", value: (s) => -Date.parse(s.lastToldTime ?? s.createTime), num: true, wide: true, cell: (s) => (s.lastToldTime ? ago((serverNow() - Date.parse(s.lastToldTime)) / 1000) : "–") },
  ]);

  function progress(/** @type {any} */ s) {
    const max = Number(s.spec?.maxTrials ?? 0);
    const added = Number(s.added ?? 0);
    if (!max) return count(s.total);
    return [added ? h("span", { class: "muted" }, `${count(added)} added, `) : "", `${count(s.handed)} of ${count(max)} `, h("span", { class: "meter", "aria-hidden": "true" }, h("span", { style: { width: `${Math.min(100, (100 * s.handed) / max)}%` } }))];
  }

  /** shown is a study with what the table computes from it. */
  function shown(/** @type {any} */ s) {
    const n = (/** @type {string} */ k) => Number(s[k] ?? 0);
    const ended = n("completed") + n("failed") + n("infeasible") + n("pruned");
    const total = ended + n("queued") + n("running");
    return { ...s, id: studyID(s.name), total, ended, handed: n("counted"), failedShare: ended ? n("failed") / ended : 0 };
  }

  /** follow hears of changes while the page is visible. A token of some studies hears of none, nor does a page of an older server. */
  async function follow() {
    clearTimeout(timer);
    if (caller.studies?.length) return load();
    const round = new AbortController();
    const stop = () => document.hidden && round.abort();
    document.addEventListener("visibilitychange", stop, { signal: AbortSignal.any([signal, round.signal]) });
    const limit = setTimeout(() => round.abort(), afresh);
    let listed = false;
    const found = /** @type {Map<string, any>} */ (new Map());
    try {
      await watchStudies((news) => {
        for (const uid of news.deletedUids ?? []) found.delete(uid);
        for (const s of news.studies ?? []) found.set(s.uid, shown(s));
        listed ||= Boolean(news.listed);
        if (!listed) return;
        all = [...found.values()];
        soon();
      }, AbortSignal.any([signal, round.signal]));
    } catch (e) {
      if (signal.aborted || (e instanceof APIError && e.status === 401)) return;
      if (!round.signal.aborted && (!(e instanceof APIError) || ![0, 503].includes(e.status))) return load();
      if (!round.signal.aborted && !all.length) place.replaceChildren(failure(e, follow));
      if (document.hidden) document.addEventListener("visibilitychange", follow, { once: true, signal });
      else timer = setTimeout(follow, round.signal.aborted ? 0 : 1000);
    } finally {
      clearTimeout(limit);
      round.abort();
    }
  }

  /** load lists the studies, and does so again after a while. */
  async function load() {
    clearTimeout(timer);
    try {
      all = (await listStudies(signal)).map(shown);
      draw();
    } catch (e) {
      if (signal.aborted) return;
      if (!all.length) place.replaceChildren(failure(e, load));
    }
    if (!signal.aborted) timer = setTimeout(() => (document.hidden ? wait() : load()), every);
  }
  /** soon draws at most once a second. */
  function soon() {
    if (drawing) return;
    const wait = Math.max(0, drawn + 1000 - Date.now());
    drawing = setTimeout(() => {
      drawing = 0;
      if (!signal.aborted) draw();
    }, wait);
  }
  const wait = () => document.addEventListener("visibilitychange", () => load(), { once: true, signal });
  const ages = setInterval(() => !document.hidden && all.length && draw(), 10_000);
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    clearInterval(ages);
  });

  /** choose adds a study to those that are compared, or takes it out. */
  function choose(/** @type {string} */ id, /** @type {boolean} */ on) {
    if (on) chosen.add(id);
    else chosen.delete(id);
    together.hidden = chosen.size < 2;
    together.textContent = chosen.size > mostStudies ? `Compare the first ${mostStudies}` : `Compare ${chosen.size}`;
    together.href = compareURL([...chosen].slice(0, mostStudies));
  }

  function draw() {
    for (const id of chosen) if (!all.some((s) => s.id === id)) choose(id, false);
    drawn = Date.now();
    const text = filter.value.toLowerCase();
    const rows = all.filter((s) => s.id.toLowerCase().includes(text));
    const c = columns.find((x) => x.key === sort.key) ?? columns[0];
    const sign = sort.down ? -1 : 1;
    rows.sort((a, b) => {
      const [x, y] = [c.value(a), c.value(b)];
      if (x !== x || y !== y) return x !== x ? (y !== y ? 0 : 1) : -1;
      return sign * (typeof x === "string" ? x.localeCompare(y) : x - y);
    });
    const running = all.filter((s) => s.state === "STUDY_STATE_ACTIVE").length;
    total.textContent = all.length ? `${count(all.length)} ${all.length === 1 ? "study" : "studies"}, ${count(running)} active` : "";
    if (!all.length) {
      place.replaceChildren(h("section", { class: "card empty-page" }, h("h2", {}, "No study yet"),
        h("p", {}, "A study searches one space for the best configuration. Create the first one ", h("a", { href: "/new" }, "here"), " or on the command line, and it appears in this list."),
        command("tuner create-study digits --space space.yaml --minimize loss")));
      return;
    }
    const active = place.contains(document.activeElement) ? /** @type {any} */ (document.activeElement) : null;
    const focused = active?.dataset.sort ? `[data-sort="${active.dataset.sort}"]` : active?.dataset.compare ? `[data-compare="${active.dataset.compare}"]` : active?.href ? `a[href="${active.getAttribute("href")}"]` : "";
    place.replaceChildren(h("div", { class: "table-frame", tabindex: "0", role: "region", "aria-label": "Studies" }, h("table", { class: "studies list" }, h("caption", { class: "sr" }, "Studies"),
      h("thead", {}, h("tr", {}, columns.map((k) => h("th", { scope: "col", class: `${k.num ? "num" : ""} ${k.wide ? "wide-only" : ""}`, "aria-sort": sort.key === k.key ? (sort.down ? "descending" : "ascending") : null },
        h("button", { type: "button", class: "sort", "data-sort": k.key, onclick: () => {
          sort = { key: k.key, down: sort.key === k.key ? !sort.down : false };
          draw();
        } }, k.title, h("span", { "aria-hidden": "true" }, sort.key === k.key ? (sort.down ? " ↓" : " ↑") : "")))))),
      h("tbody", {}, rows.map((s) => h("tr", {}, columns.map((k) => (k.key === "name" ? h("th", { scope: "row" }, k.cell(s)) : h("td", { class: `${k.num ? "num" : ""} ${k.wide ? "wide-only" : ""}` }, s.unread && k.key !== "state" ? "" : k.cell(s))))))))),
    rows.length ? "" : h("p", { class: "empty" }, `No name contains “${filter.value}”.`));
    if (focused) place.querySelector(focused)?.focus();
  }

  document.addEventListener("keydown", (e) => {
    if (e.key === "/" && !/** @type {any} */ (e.target).closest("input, textarea, select")) {
      e.preventDefault();
      filter.focus();
    }
  }, { signal });
  follow();
}
