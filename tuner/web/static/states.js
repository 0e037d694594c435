// @ts-check
// What a view shows while it has no data.

import { h } from "./dom.js";

/** skeleton stands for what loads, and shows after 150 ms. */
export const skeleton = (/** @type {number} */ lines) => h("div", { class: "skeleton", role: "status" }, h("span", { class: "sr" }, "Loading"), Array.from({ length: lines }, () => h("div", { "aria-hidden": "true" })));

/** failure says what went wrong and offers another try. */
export function failure(/** @type {any} */ e, /** @type {() => void} */ again, hint = "") {
  const title = /** @type {Record<number, string>} */ ({ 0: "The server cannot be reached", 401: "You are not logged in", 403: "Your token does not permit this", 404: "It does not exist" })[e.status] ?? "This did not work";
  return h("section", { class: "card failure", role: "alert" }, h("h2", {}, title), h("p", {}, e.message), e.reason && h("p", { class: "muted" }, `Code ${e.reason}`),
    e.status === 403 && hint && h("p", {}, hint), h("button", { type: "button", onclick: again }, "Try again"));
}
