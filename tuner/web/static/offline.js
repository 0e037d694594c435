// @ts-check
// What stands in for api.js in a file that holds a study with its data.

import { decode } from "./columns.js";

const data = JSON.parse(document.getElementById("data")?.textContent ?? "{}");

/** APIError is an error of a call that the file has no answer to. */
export class APIError extends Error {
  constructor(/** @type {number} */ status, /** @type {any} */ body) {
    super(body.message);
    this.status = status;
    this.key = false;
    this.reason = "";
  }
}

export const caller = { name: "", role: "none" };
export const offline = true;
export const studyName = data.study;

/** serverNow is the time at which the file was written. */
export const serverNow = () => data.time;

/** call answers from the file. */
export async function call(/** @type {string} */ method, /** @type {any} */ body) {
  const trials = data.answers.ListTrials?.trials ?? [];
  if (method === "ListTrials") return { trials: trials.filter((/** @type {any} */ t) => !body.states || body.states.includes(t.state)) };
  const trial = method === "GetTrial" && trials.find((/** @type {any} */ t) => t.name === body.name);
  if (trial) return trial;
  const answer = body.configs ? data.answers[`${method} best`] : data.answers[method] ?? data.answers[`${method} ${body.objective ?? body.parent}`];
  if (answer) return answer;
  if (method === "ListReports") return {};
  throw new APIError(404, { message: "this file does not have it" });
}

/** loadColumns decodes the columns of the file. */
export async function loadColumns() {
  const text = atob(document.getElementById("columns")?.textContent ?? "");
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return decode(bytes.buffer);
}

/** follow hears of nothing. */
export function follow() {}

/** requestID is for changes, of which there are none. */
export const requestID = () => "";
