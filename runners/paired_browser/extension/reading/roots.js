// Commands that number elements or read text in all shadow roots of a task's page, the closed ones too.
import { now } from "../clock.js";
import { ContextLost, navigationTimeout, TimedOut } from "../failures.js";
import { RESERVE_MS } from "../input/strategy.js";

const EXPOSE_ROUNDS = 8; // a closed shadow root may contain another
const EXPOSE_MS = 5000;

// Run a command of the page, after the closed shadow roots for which it asks are exposed; in the next document, if the page
// navigates. `argsOf` is called before each attempt.
export async function runInAllRoots({ tab, pages, tasks, deadline }, command, argsOf) {
  const left = () => deadline - RESERVE_MS - now();
  for (let rounds = 0; rounds < EXPOSE_ROUNDS && left() > 0;) {
    try {
      const answer = await pages.run(tab, command, { ...argsOf(), firstId: tasks.nextClickId(tab.id) }, left());
      if (!answer.closedHosts) {
        await tasks.setNextClickId(tab.id, answer.nextId ?? 0);
        return answer;
      }
      rounds += 1;
      await pages.exposeClosedRoots(tab, Math.min(EXPOSE_MS, Math.max(1, left())));
    } catch (error) {
      if (error instanceof TimedOut) break;
      if (!(error instanceof ContextLost)) throw error;
    }
  }
  throw navigationTimeout("The page keeps changing, so it could not be read.", { url: await tab.url() });
}
