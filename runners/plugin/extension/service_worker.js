// The entry point: connects the modules. Listeners must be registered while this file runs for the first time, because
// Chrome starts the service worker for their events.
import { Connection } from "./connection.js";
import * as pairing from "./pairing.js";
import * as taskUi from "./task_ui.js";

const RECONNECT_ALARM = "reconnect";

const connection = new Connection();
const ui = taskUi.start({ connection });
pairing.start({ connection, ui });

// Chrome stops a service worker that does nothing; the alarm starts it again, and it connects again.
chrome.alarms.create(RECONNECT_ALARM, { periodInMinutes: 0.5 });
chrome.alarms.onAlarm.addListener(() => connection.start());
chrome.runtime.onStartup.addListener(() => connection.start());
connection.start();
