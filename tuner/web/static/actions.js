// @ts-check
// Changes of a study and its trials. Each form has one request id, so that sending it twice
// has one effect, and shows the command that does the same.

import { APIError, call, caller, offline, requestID } from "./api.js";
import { command, h, number, quote } from "./dom.js";
import { at, parameters } from "./columns.js";

/**
 * dialog asks before a change. send is called once for each press, and its error is shown.
 * @param {{title: string, text?: any, fields?: any[], cli?: () => string, verb: string, danger?: boolean, ready?: () => boolean, send: (id: string) => Promise<any>, done?: () => void}} d
 */
export function dialog({ title, text, fields = [], cli, verb, danger, ready = () => true, send, done }) {
  const id = requestID();
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const line = h("p", { class: "same" });
  const submit = h("button", { type: "submit", class: danger ? "danger" : "primary" }, verb);
  const form = h("form", { method: "dialog", oninput: () => check(), onsubmit: async (/** @type {Event} */ e) => {
    e.preventDefault();
    if (submit.disabled) return;
    submit.disabled = true;
    try {
      await send(id);
      box.close();
      done?.();
    } catch (x) {
      if (!(x instanceof APIError)) throw x;
      error.hidden = false;
      error.textContent = x.message;
      submit.disabled = false;
    }
  } }, h("h2", { id: `dialog-${id}` }, title), text && h("p", {}, text), ...fields, line, error,
  h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => box.close() }, "Cancel"), submit));
  const box = h("dialog", { "aria-labelledby": `dialog-${id}`, onclose: () => box.remove() }, form);
  function check() {
    submit.disabled = !ready();
    if (cli) line.replaceChildren("The same on the command line ", command(cli()));
  }
  check();
  document.body.append(box);
  box.showModal();
}

/** button does nothing if there is a reason why, and says the reason. */
const button = (/** @type {string} */ title, /** @type {() => void} */ onclick, /** @type {string|false} */ why = false, style = "", props = {}) =>
  h("button", { type: "button", class: style, "aria-disabled": why ? "true" : null, title: why || null, onclick: () => !why && onclick(), ...props }, title);

/** lacks says that the visitor has a smaller scope than worker or admin, or is false. */
function lacks(/** @type {"worker"|"admin"} */ scope) {
  if (offline) return "This file shows the study as it was.";
  const enough = caller.role === "admin" || caller.role === scope;
  return !enough && `Your token has the scope ${caller.role}. This needs the scope ${scope === "worker" ? "worker or admin" : "admin"}.`;
}

/**
 * actions are the buttons of a study.
 * @param {import("./study.js").Study} s
 * @param {() => void} changed
 */
export function actions(s, changed, /** @type {AbortSignal} */ _signal) {
  const name = `studies/${s.name}`;
  const q = quote(s.name);
  return {
    buttons() {
      const finished = s.info.state === "STUDY_STATE_FINISHED" && "The study has finished. Continue it with tuner extend.";
      const [admin, worker] = [lacks("admin"), lacks("worker")];
      const paused = s.info.state === "STUDY_STATE_PAUSED";
      return h("div", { class: "actions" },
        paused
          ? button("Resume", () => dialog({ title: `Resume ${s.name}`, text: "Asks hand out trials again.", cli: () => `tuner resume ${q}`, verb: "Resume", send: (requestId) => call("ResumeStudy", { name, requestId }), done: changed }), admin)
          : button("Pause", () => dialog({ title: `Pause ${s.name}`, text: "Asks fail until you resume the study. Running trials may still be told.", cli: () => `tuner pause ${q}`, verb: "Pause", send: (requestId) => call("PauseStudy", { name, requestId }), done: changed }), admin || finished),
        button("Enqueue", () => enqueue(s, changed), worker || finished),
        button("Finish", () => finish(s, changed), admin || finished),
        button("Delete", () => remove(s), admin, "danger-quiet"));
    },
  };
}

function finish(/** @type {import("./study.js").Study} */ s, /** @type {() => void} */ changed) {
  const detail = h("input", { type: "text", id: "detail" });
  dialog({
    title: `Finish ${s.name}`, text: "The study hands out no more trials until it is extended. Running trials are told to stop at their next report, and their results still count.", verb: "Finish", danger: true,
    fields: [h("p", {}, h("label", { for: "detail" }, "Reason (optional) "), detail)],
    cli: () => `tuner finish ${quote(s.name)}${detail.value ? ` --detail ${quote(detail.value)}` : ""}`,
    send: (requestId) => call("FinishStudy", { name: `studies/${s.name}`, requestId, detail: detail.value }), done: changed,
  });
}

function remove(/** @type {import("./study.js").Study} */ s) {
  const typed = h("input", { type: "text", id: "typed", autocomplete: "off" });
  dialog({
    title: `Delete ${s.name}`, text: `The study and its ${s.table.n.toLocaleString("en")} trials are deleted permanently.`, verb: "Delete", danger: true,
    fields: [h("p", {}, h("label", { for: "typed" }, "Type the name of the study to confirm "), typed)],
    ready: () => typed.value === s.name,
    cli: () => `tuner delete-study ${quote(s.name)} --yes`,
    // A lost answer is safe to repeat, because a study made since has another uid.
    send: async (requestId) => {
      try {
        await call("DeleteStudy", { name: `studies/${s.name}`, requestId, uid: s.info.uid });
      } catch (e) {
        if (!(e instanceof APIError) || e.status !== 404) throw e;
      }
    },
    done: () => location.assign("/"),
  });
}

/** enqueue asks for a configuration, and begins at the best one. */
async function enqueue(/** @type {import("./study.js").Study} */ s, /** @type {() => void} */ changed) {
  const best = s.best();
  const start = best >= 0 ? (await call("GetTrial", { name: `studies/${s.name}/trials/${best}` })).config : {};
  const text = best >= 0 ? `The next ask hands it out. The form begins with the configuration of trial ${best}, the best measured.` : "The next ask hands it out.";
  configure(s.name, s.info.spec, parameters(s.table), start, text, changed);
}

/**
 * again is the button that enqueues the configuration of a trial once more.
 * @param {string} study
 * @param {any} spec
 * @param {any[]} columns parameters of the trials
 * @param {any} t
 * @param {() => void} changed
 */
export function again(study, spec, columns, t, changed) {
  if (offline) return "";
  return button("Enqueue again", () => configure(study, spec, columns, t.config ?? {}, `The next ask hands it out. The form begins with the configuration of trial ${Number(t.number ?? 0)}.`, changed), lacks("worker"));
}

/** configure asks for a configuration and enqueues it. */
function configure(/** @type {string} */ study, /** @type {any} */ spec, /** @type {any[]} */ columns, /** @type {any} */ start, /** @type {string} */ text, /** @type {() => void} */ changed) {
  const space = JSON.parse(spec.space);
  const inputs = /** @type {Map<string, any>} */ (new Map());
  const rows = columns.map((c) => {
    const p = space.parameters[c.name];
    const v = start[c.name];
    const now = v ? v.stringValue ?? v.boolValue ?? v.floatValue ?? v.intValue : c.axis.conditional ? "" : at(c.axis, 0.5);
    const id = `enqueue-${inputs.size}`;
    const input = p.values
      ? h("select", { id }, c.axis.conditional && h("option", { value: "" }, "inactive"), p.values.map((/** @type {any} */ x) => h("option", { value: String(x), selected: String(x) === String(now) }, String(x))))
      : h("input", { id, type: "text", inputmode: "decimal", value: String(now) });
    inputs.set(c.name, { input, p });
    return h("div", { class: "field" }, h("label", { for: id }, c.name), input, h("span", { class: "muted" }, p.values ? "" : `${number(p.low, 4)} … ${number(p.high, 4)}${p.scale && p.scale !== "linear" ? `, ${p.scale}` : ""}${c.axis.conditional ? ", empty if inactive" : ""}`));
  });
  const entries = () => [...inputs].filter(([, f]) => f.input.value !== "");
  const wire = (/** @type {any} */ f) => {
    const x = f.input.value.trim();
    if (f.p.values) {
      const v = f.p.values.find((/** @type {any} */ y) => String(y) === x);
      if (typeof v === "string") return { stringValue: v };
      if (typeof v === "boolean") return { boolValue: v };
      return f.p.values.every(Number.isInteger) ? { intValue: String(v) } : { floatValue: v };
    }
    return f.p.type === "int" ? { intValue: x } : { floatValue: Number(x) };
  };
  dialog({
    title: `Enqueue a configuration in ${study}`, verb: "Enqueue", text,
    fields: [h("div", { class: "fields" }, rows)],
    ready: () => entries().every(([, f]) => f.p.values || !Number.isNaN(Number(f.input.value))),
    cli: () => `tuner enqueue ${quote(study)} ${entries().map(([k, f]) => quote(`${k}=${f.input.value.trim()}`)).join(" ")}`,
    send: (requestId) => call("EnqueueTrial", { parent: `studies/${study}`, requestId, config: Object.fromEntries(entries().map(([k, f]) => [k, wire(f)])) }),
    done: changed,
  });
}

/** backupButton offers a backup of all studies. */
export function backupButton() {
  return button("Backup", () => dialog({
    title: "Back up all studies", verb: "Download", text: "The file has all studies as they are now. Check it with tuner check, and restore it with tuner restore.",
    cli: () => "tuner backup tuner-backup.db", send: async () => h("a", { href: "/api/backup", download: "tuner-backup.db" }).click(),
  }), lacks("admin"));
}

/** stopNote is the note that asks a running trial to stop. */
export const stopNote = "bkb.stop";

/** stopButton asks a running trial to stop, or takes the request back. */
export function stopButton(/** @type {string} */ study, /** @type {any} */ t, /** @type {() => void} */ changed, style = "quiet") {
  if (offline) return "";
  const n = Number(t.number ?? 0);
  const name = `studies/${study}/trials/${n}`;
  if (t.attributes?.[stopNote]) {
    return button("Let it go on", () => dialog({
      title: `Let trial ${n} go on`, verb: "Let it go on", text: "The request to stop is taken back. A worker that has stopped already does not begin again.",
      cli: () => `tuner stop ${quote(study)} ${n} --withdraw`, send: (requestId) => call("SetAttributes", { name, requestId, attributes: { [stopNote]: "" } }), done: changed,
    }), lacks("worker"), style, { "aria-label": `Let trial ${n} go on` });
  }
  return button("Stop", () => {
    const reason = h("input", { type: "text", id: "stop-reason", value: "stopped by hand" });
    dialog({
      title: `Stop trial ${n}`, verb: "Stop the trial", danger: true, text: "Its worker learns of it at the next report or heartbeat.",
      fields: [h("p", {}, h("label", { for: "stop-reason" }, "Reason "), reason)], ready: () => reason.value.trim() !== "",
      cli: () => `tuner stop ${quote(study)} ${n}${reason.value === "stopped by hand" ? "" : ` --reason ${quote(reason.value)}`}`,
      send: (requestId) => call("SetAttributes", { name, requestId, attributes: { [stopNote]: reason.value } }), done: changed,
    });
  }, lacks("worker"), style, { "aria-label": `Stop trial ${n}` });
}

/**
 * notes shows and changes the attributes of a study or trial.
 * @param {{name: string, attributes: Record<string, string>, changed: () => void, scope: "worker"|"admin"}} n
 */
export function notes({ name, attributes, changed, scope }) {
  const rows = Object.entries(attributes);
  const [, study, , trial] = name.split("/");
  const edit = (/** @type {string} */ key, /** @type {string} */ value) => {
    const k = h("input", { type: "text", id: "note-key", value: key, readonly: key !== "" });
    const v = h("textarea", { id: "note-value", rows: "4" });
    v.value = value;
    dialog({
      title: key ? `Note ${key}` : "New note", verb: "Save", text: key ? "An empty note is removed." : undefined,
      fields: [h("div", { class: "fields" }, h("div", { class: "field" }, h("label", { for: "note-key" }, "key"), k), h("div", { class: "field" }, h("label", { for: "note-value" }, "text"), v))],
      ready: () => k.value !== "" && !k.value.includes("="),
      cli: () => `tuner note ${quote(study)}${trial === undefined ? "" : ` ${trial}`} ${quote(`${k.value || "KEY"}=${v.value}`)}`,
      send: (requestId) => call("SetAttributes", { name, requestId, attributes: { [k.value]: v.value } }), done: changed,
    });
  };
  return h("section", { class: "figure" }, h("div", { class: "figure-head" }, h("h2", {}, "Notes"), h("div", { class: "tools" }, button("Add a note", () => edit("", ""), lacks(scope), "quiet"))),
    rows.length ? h("dl", { class: "facts column" }, rows.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v, " ", button("Edit", () => edit(k, v), lacks(scope), "quiet", { "aria-label": `Edit the note ${k}` }))))) : h("p", { class: "muted" }, "There are none."));
}
