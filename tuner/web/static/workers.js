// @ts-check
// The leases of all studies, with who holds which trial.

import { APIError, call, caller, serverNow } from "./api.js";
import { stopButton, stopNote } from "./actions.js";
import { command, count, duration, h, number, quote, studyID, studyURL, trialURL } from "./dom.js";
import { failure, skeleton } from "./states.js";

const every = 2000; // milliseconds between two looks at the leases
const most = 500; // trials of one study

/** listStudies lists the studies that the visitor may see. */
export async function listStudies(/** @type {AbortSignal} */ signal) {
  if (caller.studies?.length) return (await Promise.all(caller.studies.map((s) => call("GetStudy", { name: `studies/${s}` }, signal).catch(() => null)))).filter(Boolean);
  const found = [];
  let pageToken = "";
  do {
    const page = await call("ListStudies", { pageToken }, signal);
    found.push(...(page.studies ?? []));
    pageToken = page.nextPageToken ?? "";
  } while (pageToken);
  return found;
}

/** workers shows the leases until the signal. */
export function workers(/** @type {HTMLElement} */ main, /** @type {AbortSignal} */ signal) {
  document.title = "Workers · BKB Tuner";
  const place = h("div", {}, skeleton(6));
  const total = h("span", { class: "muted", role: "status" });
  main.replaceChildren(h("div", { class: "page-head" }, h("h1", {}, "Workers"), h("span", { class: "grow" }), total), place,
    h("p", { class: "hint" }, "A worker holds a trial under a lease, and renews it by reports and heartbeats. When a lease expires, the trial is queued for the next worker."));
  let timer = 0;
  let rows = /** @type {any[]} */ ([]);
  let more = false;
  const last = /** @type {Map<string, {at: string, text: string}>} */ (new Map()); // what a trial reported last

  /** report is what a trial reported last, asked for when it was seen since. */
  async function report(/** @type {any} */ t, /** @type {string} */ objective) {
    const known = last.get(t.name);
    if (known?.at === `${t.epoch} ${t.lastSeenTime}`) return known.text;
    const reports = (await call("GetTrial", { name: t.name, view: "TRIAL_VIEW_FULL" }, signal)).reports ?? [];
    const r = reports.filter((/** @type {any} */ x) => (x.epoch ?? 0) === (t.epoch ?? 0)).at(-1);
    const v = r && (r.values?.[objective] ?? Object.values(r.values ?? {})[0]);
    const text = r ? `${number(Number(v), 4)}, step ${r.step ?? 0}` : "–";
    last.set(t.name, { at: `${t.epoch} ${t.lastSeenTime}`, text });
    return text;
  }

  async function load() {
    clearTimeout(timer);
    try {
      const studies = (await listStudies(signal)).filter((s) => Number(s.running ?? 0) + Number(s.queued ?? 0) > 0);
      more = false;
      const found = await Promise.all(studies.map(async (s) => {
        const page = await call("ListTrials", { parent: s.name, states: ["TRIAL_STATE_RUNNING", "TRIAL_STATE_QUEUED"], pageSize: most }, signal);
        more ||= Boolean(page.nextPageToken);
        return (page.trials ?? []).filter((/** @type {any} */ t) => t.state === "TRIAL_STATE_RUNNING" || Number(t.epoch ?? 0) > 0).map((/** @type {any} */ t) => ({ ...t, number: Number(t.number ?? 0), study: studyID(s.name), objective: s.spec.objectives[0].name }));
      }));
      rows = found.flat().sort((a, b) => (a.worker ?? "").localeCompare(b.worker ?? "") || a.study.localeCompare(b.study) || a.number - b.number);
      const alive = new Set(rows.map((t) => t.name));
      for (const name of last.keys()) if (!alive.has(name)) last.delete(name);
      const due = rows.slice(0, 100);
      await Promise.all(Array.from({ length: 4 }, async () => {
        for (let t = due.pop(); t; t = due.pop()) t.said = await report(t, t.objective).catch(() => "–");
      }));
      if (!signal.aborted) draw();
    } catch (e) {
      if (signal.aborted) return;
      if (!(e instanceof APIError)) throw e;
      if (e.status === 401) return;
      if (!rows.length) place.replaceChildren(failure(e, load));
    }
    if (!signal.aborted) timer = setTimeout(() => (document.hidden ? document.addEventListener("visibilitychange", load, { once: true, signal }) : load()), every);
  }

  function draw() {
    if (document.querySelector("dialog")) return; // its button would lose the focus
    const since = (/** @type {string} */ time) => duration((serverNow() - Date.parse(time)) / 1000);
    const expired = (/** @type {any} */ t) => t.state === "TRIAL_STATE_QUEUED" || Date.parse(t.leaseDeadline) < serverNow();
    total.textContent = rows.length ? `${count(rows.length)} ${rows.length === 1 ? "lease" : "leases"}, ${count(rows.filter(expired).length)} expired` : "";
    if (!rows.length) {
      place.replaceChildren(h("section", { class: "card empty-page" }, h("h2", {}, "No trial runs now"), h("p", {}, "A worker asks for trials and runs a command with each. Start one with"), command("tuner run digits -- python train.py {args}")));
      return;
    }
    const focused = place.contains(document.activeElement) ? /** @type {any} */ (document.activeElement) : null;
    const key = focused?.getAttribute("aria-label") ?? focused?.getAttribute("href");
    place.replaceChildren(h("div", { class: "table-frame", tabindex: "0", role: "region", "aria-label": "Leases" }, h("table", { class: "studies workers" }, h("caption", { class: "sr" }, "Leases"),
      h("thead", {}, h("tr", {}, ["worker", "study", "trial", "since", "lease", "seen", "expiries", "last report", ""].map((t, i) => h(t ? "th" : "td", { scope: t ? "col" : null, class: [3, 5, 6, 7].includes(i) ? "wide-only" : "" }, t)))),
      h("tbody", {}, rows.map((t) => h("tr", {}, h("th", { scope: "row" }, t.worker || "unnamed"), h("td", {}, h("a", { href: studyURL(t.study) }, t.study)), h("td", {}, h("a", { href: trialURL(t.study, t.number) }, `#${t.number}`)),
        h("td", { class: "wide-only" }, t.startTime ? since(t.startTime) : "–"),
        h("td", {}, expired(t) ? h("span", { class: "error" }, `✕ expired${t.state === "TRIAL_STATE_QUEUED" ? ", queued again" : ""}`) : `ends in ${duration((Date.parse(t.leaseDeadline) - serverNow()) / 1000)}`),
        h("td", { class: "wide-only" }, t.lastSeenTime ? `${since(t.lastSeenTime)} ago` : "–"), h("td", { class: "wide-only" }, count(Number(t.expiries ?? 0))), h("td", { class: "wide-only" }, t.said ?? "–"),
        h("td", {}, t.attributes?.[stopNote] ? h("span", { class: "warn" }, "stopping") : t.state === "TRIAL_STATE_RUNNING" && stopButton(t.study, t, load))))))),
    h("p", {}, command(`tuner trials ${quote(rows[0].study)} --state running`)), more ? h("p", { class: "muted" }, `Only the first ${most} trials of a study are listed.`) : "");
    if (key) for (const e of place.querySelectorAll("a, button")) if ((e.getAttribute("aria-label") ?? e.getAttribute("href")) === key) /** @type {any} */ (e).focus();
  }
  const clock = setInterval(() => !document.hidden && rows.length && draw(), 1000);
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    clearInterval(clock);
  });
  load();
}
