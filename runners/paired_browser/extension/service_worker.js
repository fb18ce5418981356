// The entry point: connects the modules. Listeners must be registered while this file runs for the first time, because
// Chrome starts the service worker for their events.
import { ActionRecords } from "./action_records.js";
import { ActionRunner } from "./action_runner.js";
import { Debugger } from "./cdp.js";
import { Connection } from "./connection.js";
import { ownPages } from "./own_pages.js";
import { Pages } from "./page.js";
import * as pairing from "./pairing.js";
import { StateSync } from "./state_sync.js";
import { preparation, sessionToken } from "./tab/preparation.js";
import * as personInput from "./takeover/person_input.js";
import { Tasks } from "./tasks.js";

const RECONNECT_ALARM = "reconnect";

chrome.storage.local.setAccessLevel?.({ accessLevel: "TRUSTED_CONTEXTS" }); // it holds the secret: not for content scripts
const token = sessionToken();
const connection = new Connection();
const cdp = new Debugger();
const tasks = new Tasks({ cdp });
cdp.prepare = preparation({ tabOf: (tabId) => tasks.tab(tabId), token, send: (...command) => cdp.send(...command) });
const isOwn = (url) => ownPages(connection.ownOrigins)(url);
const pages = new Pages({ cdp, token });
const runner = new ActionRunner({ connection, records: new ActionRecords(), tasks, cdp, pages, ui: personInput, isOwn });
new StateSync({ connection });
const ui = personInput.start({ connection, tasks });
pairing.start({ connection, ui });

tasks.isTakenOver = personInput.isTakenOver;
tasks.isWorking = (taskId) => runner.running.has(taskId);
tasks.restoreSessions();
tasks.onTabAdded = personInput.tabAdded;
tasks.onTabsLeft = personInput.tabsLeft;
cdp.onDetach(personInput.debuggerDetached);

connection.on("task_status", async (message) => {
  const { taskId, status, title } = message;
  await tasks.ready;
  personInput.taskStatus(message);
  await tasks.setStatus(taskId, status, title);
  tasks.rest(taskId);
});
connection.onActive(async (session) => {
  await tasks.ready;
  await tasks.keepOnly(session.tasks.map(({ taskId }) => taskId));
});

// Chrome stops a service worker that does nothing; the alarm starts it again, and it connects again.
chrome.alarms.create(RECONNECT_ALARM, { periodInMinutes: 0.5 });
chrome.alarms.onAlarm.addListener(() => connection.start());
chrome.runtime.onStartup.addListener(() => connection.start());
connection.start();
