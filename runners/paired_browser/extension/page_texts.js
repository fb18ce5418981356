// The texts of the extension's own pages: each element with data-text gets the message of that name.
export const text = (name, ...values) => chrome.i18n.getMessage(name, values);

export function showTexts(root = document) {
  document.documentElement.lang = text("@@ui_locale").replace("_", "-");
  for (const element of root.querySelectorAll("[data-text]")) element.textContent = text(element.dataset.text);
}

// Ask the service worker; throws what it answers as an error.
export async function ask(type, fields = {}) {
  const answer = await chrome.runtime.sendMessage({ type, ...fields });
  if (!answer?.ok) throw new Error(answer?.error ?? "unreachable");
  return answer;
}

export const stateText = ({ isPaired, isConnected }) => text(isConnected ? "stateConnected" : isPaired ? "stateOffline" : "stateUnpaired");
