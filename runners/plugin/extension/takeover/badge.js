// The badge and the tooltip of the toolbar button.
const BADGES = {
  takeover: { text: "II", color: "#b34700", title: "badgeTakeover" },
  working: { text: "●", color: "#4f46e5", title: "badgeWorking" },
  offline: { text: "!", color: "#b3261e", title: "badgeOffline" },
  connected: { text: "", color: "#4f46e5", title: "badgeConnected" },
  unpaired: { text: "", color: "#4f46e5", title: "badgeUnpaired" },
};

// The most urgent state of the tasks that an agent works on; without one, that of the connection.
export function badgeState({ isPaired, isConnected, tasks }) {
  if (tasks.some(({ isTaken }) => isTaken)) return "takeover";
  if (!isPaired) return "unpaired";
  if (!isConnected) return "offline";
  return tasks.length ? "working" : "connected";
}

export function showBadge(status) {
  const { text, color, title } = BADGES[badgeState(status)];
  chrome.action.setBadgeText({ text });
  chrome.action.setBadgeBackgroundColor({ color });
  chrome.action.setBadgeTextColor({ color: "#ffffff" });
  chrome.action.setTitle({ title: chrome.i18n.getMessage(title) });
}
