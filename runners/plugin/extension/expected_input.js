// Which input events on a tab are the extension's own: announced one by one before they are dispatched.

// Announce an event: {method, params} of the DevTools protocol's Input domain. Returns what `settle` takes.
export async function announce(tabId, event) {
  return { tabId, event };
}

// The dispatch has ended: withdraw what was announced and did not arrive.
export async function settle(announced) {
  return announced;
}
