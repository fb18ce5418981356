// The badge and the tooltip of the toolbar button.
const BADGES = {
  lostTaken: { text: "II", color: "#b3261e", title: "badgeLostTaken" },
  takeover: { text: "II", color: "#b34700", title: "badgeTakeover" },
  lost: { text: "!", color: "#b34700", title: "badgeLost" },
  waiting: { text: "?", color: "#b34700", title: "badgeWaiting" },
  working: { text: "●", color: "#4f46e5", title: "badgeWorking" },
  offline: { text: "!", color: "#b3261e", title: "badgeOffline" },
  connected: { text: "", color: "#4f46e5", title: "badgeConnected" },
  unpaired: { text: "", color: "#4f46e5", title: "badgeUnpaired" },
};

// The most urgent state of the tasks that an agent works on; without one, that of the connection.
export function badgeState({ isPaired, isConnected, tasks }) {
  if (tasks.some(({ isTaken, isOverlayLost }) => isTaken && isOverlayLost)) return "lostTaken";
  if (tasks.some(({ isTaken }) => isTaken)) return "takeover";
  if (!isPaired) return "unpaired";
  if (!isConnected) return "offline";
  if (tasks.some(({ isOverlayLost }) => isOverlayLost)) return "lost";
  if (tasks.some(({ wait }) => wait)) return "waiting";
  return tasks.length ? "working" : "connected";
}

export function showBadge(status) {
  const { text, color, title } = BADGES[badgeState(status)];
  chrome.action.setBadgeText({ text });
  chrome.action.setBadgeBackgroundColor({ color });
  chrome.action.setBadgeTextColor({ color: "#ffffff" });
  chrome.action.setTitle({ title: chrome.i18n.getMessage(title) });
}
