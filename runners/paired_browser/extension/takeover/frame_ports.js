// The connections of the content scripts (overlay/frame.js), one for each frame of the tabs of tasks.
const ports = new Map(); // tabId → Set of ports
const presses = new Map(); // port → function that receives whether the next press in its document hits the element
const questions = new Map(); // id → { port, answered }
let lastQuestion = 0;

// Keep a frame's connection until it ends.
export function addPort(port) {
  const { id } = port.sender.tab;
  if (!ports.has(id)) ports.set(id, new Set());
  ports.get(id).add(port);
  port.onDisconnect.addListener(() => removePort(port));
}

export function removePort(port) {
  const { id } = port.sender.tab;
  ports.get(id)?.delete(port);
  if (!ports.get(id)?.size) ports.delete(id);
  receivePress(port, { isHit: false });
  for (const question of [...questions.values()]) if (question.port === port) question.answered();
}

export const tabsWithPorts = () => [...ports.keys()];
export const portsOf = (tabId) => [...(ports.get(tabId) ?? [])];
export const isTopFrame = (port) => port.sender.frameId === 0;

// Send a message to each frame of a tab.
export function tellFrames(tabId, message, only = () => true) {
  for (const port of portsOf(tabId).filter(only)) tell(port, message);
}

export function tell(port, message) {
  try {
    port.postMessage(message);
  } catch {
    removePort(port); // its document is gone, and the event of its end has not arrived
  }
}

// Send a message to each frame of a tab and wait for their answers. A frame's answer comes after everything that it sent
// before. A frame that is closed or left counts as answered.
export function askFrames(tabId, message, only = () => true) {
  return Promise.all(portsOf(tabId).filter(only).map((port) => ask(port, message)));
}

function ask(port, message) {
  const id = (lastQuestion += 1);
  return new Promise((resolve) => {
    const answered = () => {
      questions.delete(id);
      resolve();
    };
    questions.set(id, { port, answered });
    tell(port, { ...message, question: id });
  });
}

// Return a promise of whether the next press in a tab hits the element that it is meant for. A document reports its press
// before its connection ends, so this is known also of one that the press left.
export function nextPress(tabId) {
  const port = portsOf(tabId).findLast(isTopFrame);
  return port ? new Promise((resolve) => presses.set(port, resolve)) : Promise.resolve(false);
}

// Record what a document reports of a press.
export function receivePress(port, { isHit }) {
  presses.get(port)?.(isHit === true);
  presses.delete(port);
}

// Record a frame's answer.
export function receiveAnswer({ question }) {
  questions.get(question)?.answered();
}
