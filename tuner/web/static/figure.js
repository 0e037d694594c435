// @ts-check
// The frame of a chart: title, explanation, the same data as a table, downloads, and the
// command that prints the same.

import { command, csv, exactly, h, save } from "./dom.js";

const shownRows = 200;

/**
 * figure makes the frame. The table and the downloads are made when they are asked for.
 * @param {{title: string, hint?: any, name: string, cli?: string, tools?: any[], rows?: () => any[][]|Promise<any[][]>, canvas?: () => HTMLCanvasElement|null, body: any, wide?: boolean, downloads?: any[]}} f
 *   rows begins with the titles of the columns
 */
export function figure({ title, hint, name, cli, tools = [], rows, canvas, body, wide, downloads = [] }) {
  const id = `figure-${name}`;
  const table = h("div", { class: "as-table", hidden: true, tabindex: "0", role: "region", "aria-label": `${title} as a table` });
  const toggle = rows && h("button", { type: "button", class: "quiet", "aria-expanded": "false", onclick: async () => {
    const show = table.hasAttribute("hidden");
    toggle.setAttribute("aria-expanded", String(show));
    toggle.textContent = show ? "Hide table" : "Show as table";
    table.toggleAttribute("hidden", !show);
    if (show) table.replaceChildren(asTable(await rows(), title));
  } }, "Show as table");
  return h("section", { class: wide ? "figure wide" : "figure", "aria-labelledby": id },
    h("div", { class: "figure-head" }, h("h2", { id }, title), h("div", { class: "tools" }, tools)),
    hint && h("p", { class: "hint" }, hint),
    h("div", { class: "figure-body" }, body),
    h("div", { class: "figure-foot" },
      toggle,
      rows && h("button", { type: "button", class: "quiet", onclick: async () => save(`${name}.csv`, csv(await rows())) }, "CSV"),
      downloads,
      canvas && h("button", { type: "button", class: "quiet", onclick: () => picture(canvas(), name) }, "PNG"),
      cli && command(cli)),
    table);
}

/** asTable is rows as a table, which says so when it leaves some out. */
function asTable(/** @type {any[][]} */ rows, /** @type {string} */ title) {
  const [head, ...body] = rows;
  const left = body.length - shownRows;
  return h("table", {},
    h("caption", {}, left > 0 ? `${title}, the first ${shownRows} of ${body.length.toLocaleString("en")} rows. The CSV has all of them.` : title),
    h("thead", {}, h("tr", {}, head.map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", {}, body.slice(0, shownRows).map((r) => h("tr", {}, r.map((v) => h("td", {}, exactly(v)))))));
}

/** picture saves a canvas on the colour of the page. */
function picture(/** @type {HTMLCanvasElement|null} */ canvas, /** @type {string} */ name) {
  if (!canvas) return;
  const out = document.createElement("canvas");
  out.width = canvas.width;
  out.height = canvas.height;
  const g = /** @type {CanvasRenderingContext2D} */ (out.getContext("2d"));
  g.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--card").trim();
  g.fillRect(0, 0, out.width, out.height);
  g.drawImage(canvas, 0, 0);
  out.toBlob((b) => b && save(`${name}.png`, b));
}
