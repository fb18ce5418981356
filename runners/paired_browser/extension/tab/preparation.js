// What is sent to a tab when the debugger attaches to it.

// Returns a function (tabId) => promise for Debugger. `tabOf(tabId)` is the TaskTab; `token` a promise of the random prefix of
// the events with which page scripts ask what the page waits for.
export function preparation({ tabOf, token, send }) {
  return async (tabId) => {
    const source = await activityScript(token);
    const optional = (method, params) => send(tabId, method, params).catch(() => {});
    const [{ frameTree }] = await Promise.all([
      send(tabId, "Page.getFrameTree"),
      send(tabId, "Page.enable"),
      optional("Page.addScriptToEvaluateOnNewDocument", { source }),
      // The page believes that it has the focus and is seen, so that it reacts although another tab is shown.
      optional("Emulation.setFocusEmulationEnabled", { enabled: true }),
      optional("Inspector.enable"),
      optional("Runtime.enable"),
      optional("Log.enable"),
    ]);
    tabOf(tabId).rememberPage(frameTree.frame);
  };
}

// The script that counts a page's requests and timers while it loads. It runs in the page's own world.
async function activityScript(token) {
  const response = await fetch(chrome.runtime.getURL("generated/activity.js"));
  return (await response.text()).replaceAll("__TOKEN__", await token);
}

// A random prefix, the same until the browser is closed.
export async function sessionToken(storage = chrome.storage.session) {
  const { token } = await storage.get("token");
  if (token) return token;
  const made = `continuity:${crypto.randomUUID()}:`;
  await storage.set({ token: made });
  return made;
}
