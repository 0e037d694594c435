// @ts-check
// The frame of the page: which view, login, connection, keyboard.

import { APIError, login, logout, onConnection, recognise } from "./api.js";
import { compare } from "./compare.js";
import { h, studyURL } from "./dom.js";
import { newStudy } from "./new.js";
import { studies } from "./studies.js";
import { study } from "./study.js";
import { trial } from "./trial.js";
import { workers } from "./workers.js";

const $ = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const main = $("main");
let view = new AbortController();

const liveWords = /** @type {Record<string, [string, string]>} */ ({ live: ["●", "live"], reconnecting: ["○", "connecting again"], paused: ["‖", "paused while hidden"], ended: ["✕", "ended"] });

/** live says how the page hears of changes. */
function live(/** @type {string} */ what) {
  const [shape, word] = liveWords[what] ?? ["", ""];
  $("live").replaceChildren(h("span", { class: what, "aria-hidden": "true" }, shape), ` ${word}`);
}

/** show shows the view that the address names. */
function show() {
  view.abort();
  view = new AbortController();
  $("live").replaceChildren();
  const [, kind, name, , number] = location.pathname.split("/").map(decodeURIComponent);
  const crumbs = [["Studies", "/"]];
  const title = /** @type {Record<string, string>} */ ({ new: "New study", workers: "Workers", compare: "Compare" })[kind];
  if (title) crumbs.push([title, location.pathname + location.search]);
  if (kind === "studies" && name) crumbs.push([name, studyURL(name)]);
  if (number !== undefined) crumbs.push([`trial ${number}`, location.pathname]);
  $("crumbs").replaceChildren(...crumbs.map(([text, href], i) => h("a", { href, "aria-current": i === crumbs.length - 1 ? "page" : null }, text)));
  if (kind === "new") newStudy(main, view.signal);
  else if (kind === "workers") workers(main, view.signal);
  else if (kind === "compare") compare(main, view.signal);
  else if (kind !== "studies") studies(main, view.signal);
  else if (number !== undefined) trial(main, name, Number(number), view.signal, live);
  else study(main, name, view.signal, live);
}

let asking = false;
/** askToken shows the form for a token, or says that the visitor needs the address with the key. */
function askToken(/** @type {APIError} */ why) {
  if (asking) return;
  asking = true;
  view.abort();
  document.title = "Log in · BKB Tuner";
  $("live").replaceChildren();
  if (why.key) {
    main.replaceChildren(h("section", { class: "card login" }, h("h1", {}, "Log in"), h("p", { class: "error", role: "alert" }, `${why.message}.`)));
    return;
  }
  // A first visitor has done nothing wrong.
  const message = localStorage.getItem("bkb-session") ? why.message : "";
  const token = h("input", { type: "password", id: "token", name: "token", autocomplete: "current-password", required: true });
  const error = h("p", { class: "error", role: "alert" }, message);
  const button = h("button", { type: "submit", class: "primary" }, "Log in");
  const form = h("form", { class: "card login", onsubmit: async (/** @type {Event} */ e) => {
    e.preventDefault();
    button.disabled = true;
    try {
      await enter(token.value.trim());
    } catch (x) {
      if (!(x instanceof APIError)) throw x;
      error.textContent = x.message;
      button.disabled = false;
      token.select();
    }
  } }, h("h1", {}, "Log in"), h("p", {}, "Enter a token for this server. An admin makes one with ", h("code", {}, "tuner token add"), ". The browser keeps a session of 12 hours and not the token."),
  h("label", { for: "token" }, "Token"), token, error, button);
  main.replaceChildren(form);
  token.focus();
}

async function enter(/** @type {string} */ token) {
  await login(token);
  asking = false;
  localStorage.setItem("bkb-session", "1");
  await begin();
}

/** begin learns who the visitor is, and shows the view. */
async function begin() {
  try {
    const { name, role, studies } = await recognise();
    $("user").replaceChildren(name === "anybody" ? (localStorage.getItem("bkb-session") ? "" : h("span", { class: "muted", title: "The server has no tokens, so each user of this machine is an admin" }, "no login")) : h("span", { class: "muted" }, `${name}, ${role}${studies?.length ? ` of ${studies.join(", ")}` : ""}`));
    leave();
  } catch (e) {
    if (!(e instanceof APIError)) throw e;
    if (e.status === 401) return; // the form for a token is there
  }
  show();
}

/** leave adds the button that ends a session. */
function leave() {
  if (!localStorage.getItem("bkb-session")) return;
  $("user").append(" ", h("button", { type: "button", class: "quiet", onclick: async () => {
    await logout();
    localStorage.removeItem("bkb-session");
    $("user").replaceChildren();
    begin(); // the server says which login it needs
  } }, "Log out"));
}

addEventListener("bkb-login", (/** @type {any} */ e) => askToken(e.detail));
onConnection((online) => {
  const banner = $("banner");
  banner.hidden = online;
  banner.textContent = online ? "" : "The server cannot be reached. The page shows the last data and tries again.";
});

document.addEventListener("keydown", (e) => {
  if (e.key !== "?" || /** @type {any} */ (e.target).closest("input, textarea, select")) return;
  const keys = [["/", "filter the studies"], ["?", "this list"], ["← →", "in a chart, go from trial to trial, with Shift in large steps"], ["Home End", "in a chart, the first and last trial"], ["Enter", "in a chart, open the trial"], ["Escape", "clear the filters of the parallel coordinates, close a dialog"]];
  const box = h("dialog", { "aria-labelledby": "keys", onclose: () => box.remove() }, h("h2", { id: "keys" }, "Keys"), h("dl", { class: "facts column" }, keys.map(([k, v]) => h("div", {}, h("dt", {}, h("kbd", {}, k)), h("dd", {}, v)))), h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => box.close() }, "Close")));
  document.body.append(box);
  box.showModal();
});

const key = /^#key=(.+)$/.exec(location.hash);
if (key) {
  history.replaceState(null, "", location.pathname);
  enter(decodeURIComponent(key[1])).catch((e) => e.status === 401 || askToken(e));
} else begin();
