// @ts-check
// Calls of the service, columns and events.

import { decode } from "./columns.js";

/** APIError is an error of the service, or of the way to it. */
export class APIError extends Error {
  constructor(/** @type {number} */ status, /** @type {any} */ body) {
    super(body?.message || `the server answered with status ${status}`);
    this.status = status;
    this.key = false; // whether the visitor needs the key of the server, and not a token
    const info = (body?.details ?? []).find((/** @type {any} */ d) => d["@type"]?.endsWith("ErrorInfo"));
    this.reason = info?.reason ?? (status ? `HTTP ${status}` : "OFFLINE");
  }
}

const listeners = /** @type {Set<(online: boolean) => void>} */ (new Set());
let online = true;
let skew = 0; // the server's clock minus that of the browser, in milliseconds

/** onConnection calls f when the server becomes unreachable or reachable. */
export const onConnection = (/** @type {(online: boolean) => void} */ f) => listeners.add(f);

function connected(/** @type {boolean} */ now) {
  if (now === online) return;
  online = now;
  for (const f of listeners) f(now);
}

/** serverNow is the time on the server's clock in milliseconds. */
export const serverNow = () => Date.now() + skew;

async function request(/** @type {string} */ path, /** @type {RequestInit} */ init = {}) {
  let r;
  try {
    r = await fetch(path, { cache: "no-store", ...init });
  } catch (e) {
    if (init.signal?.aborted) throw e;
    connected(false);
    throw new APIError(0, { message: "the server cannot be reached" });
  }
  connected(true);
  const date = Date.parse(r.headers.get("Date") ?? "");
  if (date && Math.abs(date - serverNow()) > 1500) skew = date - Date.now();
  if (!r.ok) {
    const error = new APIError(r.status, await r.json().catch(() => null));
    error.key = r.headers.get("WWW-Authenticate") === "Key";
    if (r.status === 401) dispatchEvent(new CustomEvent("bkb-login", { detail: error }));
    throw error;
  }
  return r;
}

const json = (/** @type {any} */ body) => ({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

/** call calls a method of the service. */
export async function call(/** @type {string} */ method, /** @type {any} */ body, /** @type {AbortSignal|undefined} */ signal = undefined) {
  return (await request(`/tuner.v1.Tuner/${method}`, { ...json(body), signal })).json();
}

/** caller is who the server takes the visitor for. */
export let caller = /** @type {{name: string, role: string, studies?: string[]}} */ ({ name: "", role: "admin" });

/** offline tells whether there is no server, as in a file with a study. */
export const offline = false;

/** recognise asks the server who the visitor is. */
export async function recognise() {
  caller = await call("GetCaller", {});
  return caller;
}

/** login begins a session. */
export const login = (/** @type {string} */ token) => request("/api/login", json({ token }));
export const logout = () => request("/api/logout", json({}));

const api = (/** @type {string} */ study) => `/api/studies/${encodeURIComponent(study)}`;

/** loadColumns loads the trials of a study, all or those with an event after a position. A light load leaves the parameters out. */
export async function loadColumns(/** @type {string} */ study, /** @type {string[]} */ extra = [], after = 0, /** @type {AbortSignal|undefined} */ signal = undefined, light = false) {
  const r = await request(`${api(study)}/columns?${new URLSearchParams({ ...(light && { light: "1" }), ...(extra.length && { with: extra.join(",") }), ...(after && { after: String(after) }) })}`, { signal });
  return decode(await r.arrayBuffer());
}

/**
 * follow hears of a study when it has changed, while the page is visible, until the signal. A
 * browser has few connections for all its tabs, so a hidden one holds none.
 * @param {string} study
 * @param {() => {uid: string|number, position: number}} has what the page has, a study at a position
 * @param {(study: any) => void} heard
 * @param {(state: "live"|"reconnecting"|"paused"|"ended", message?: string) => void} changed
 * @param {AbortSignal} signal
 */
export function follow(study, has, heard, changed, signal) {
  let source = /** @type {EventSource|null} */ (null);
  let timer = 0;
  let wait = 1000;
  const stop = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const start = () => {
    stop();
    if (document.hidden || signal.aborted) return;
    const { uid, position } = has();
    source = new EventSource(`${api(study)}/events?after=${position}&uid=${uid}`);
    source.onopen = () => {
      wait = 1000;
      connected(true);
      changed("live");
    };
    source.onmessage = (e) => heard(JSON.parse(e.data));
    source.addEventListener("end", (/** @type {any} */ e) => {
      const { code, message } = JSON.parse(e.data);
      if (code === 5) {
        stop();
        changed("ended", message);
      }
    });
    source.onerror = async () => {
      // EventSource gives up on an HTTP error, and its own tries cannot say why.
      stop();
      if (signal.aborted) return;
      changed("reconnecting");
      try {
        await call("GetStudy", { name: `studies/${study}` });
      } catch (e) {
        if (e instanceof APIError && e.status === 404) return changed("ended", e.message);
        if (e instanceof APIError && e.status === 401) return;
      }
      timer = setTimeout(start, wait);
      wait = Math.min(2 * wait, 4000);
    };
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      stop();
      changed("paused");
    } else start();
  }, { signal });
  signal.addEventListener("abort", stop);
  start();
}

/** checkSpace reads the text of a search space, and says what is wrong with it. */
export async function checkSpace(/** @type {string} */ space, /** @type {AbortSignal} */ signal) {
  return (await request("/api/space", { ...json({ space }), signal })).json();
}

/** listMethods lists the proposers and pruners of the server, with their options. */
export async function listMethods(/** @type {AbortSignal} */ signal) {
  return (await request("/api/methods", { signal })).json();
}

/**
 * watchStudies hears of all studies, and of changes, until the signal or an error, which it
 * throws.
 * @param {(news: {studies?: any[], deletedUids?: string[], listed?: boolean}) => void} heard
 * @param {AbortSignal} signal
 */
export async function watchStudies(heard, signal) {
  const r = await request("/tuner.v1.Tuner/WatchStudies", { ...json({}), signal });
  const reader = /** @type {ReadableStream} */ (r.body).pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    let part;
    try {
      part = await reader.read();
    } catch (e) {
      if (signal.aborted) throw e;
      part = { done: true, value: "" };
    }
    if (part.done) throw new APIError(0, { message: "the server ended the answer" });
    const lines = (rest + part.value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines.filter(Boolean)) {
      const { result, error } = JSON.parse(line);
      if (error) throw new APIError(error.code === 16 ? 401 : 503, error);
      heard(result);
    }
  }
}

/** requestID identifies a change, so that sending it twice has one effect. */
export const requestID = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
