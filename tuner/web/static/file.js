// @ts-check
// The page of one study in a file.

import { serverNow, studyName } from "./offline.js";
import { study } from "./study.js";

const live = /** @type {HTMLElement} */ (document.getElementById("live"));
live.textContent = `as of ${new Date(serverNow()).toLocaleString()}`;
study(/** @type {HTMLElement} */ (document.getElementById("main")), studyName, new AbortController().signal, () => {});
