// Waiting and deadlines; times are milliseconds of performance.now().
import { TimedOut } from "./failures.js";

export const now = () => performance.now();
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));

// Await a promise for at most `ms`; what it becomes later is ignored.
export async function within(ms, promise, message = "the time is up") {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new TimedOut(message)), Math.max(0, ms));
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
    Promise.resolve(promise).catch(() => {});
  }
}

// Call `isDone` every `everyMs` until it returns true or the time `end` has come; return whether it did.
export async function waitUntil(isDone, end, everyMs = 20) {
  while (!(await isDone())) {
    if (now() >= end) return false;
    await sleep(Math.min(everyMs, Math.max(1, end - now())));
  }
  return true;
}
