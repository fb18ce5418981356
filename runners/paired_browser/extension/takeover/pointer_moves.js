// Which movements of the mouse over a task's tab are a person's wish to take over.
//
// Chrome also reports movements when a page moves under a resting mouse, or when a tab is shown under it. So a movement
// counts only if the mouse has moved on the screen. And the hand that pressed Resume has to leave the button: movements
// count again once that mouse has rested or left the page.
const FAR = 3; // pixels of the screen
const REST_MS = 1000;

export class PointerMoves {
  constructor({ setTimer = (...timer) => setTimeout(...timer), clearTimer = (timer) => clearTimeout(timer) } = {}) {
    Object.assign(this, { setTimer, clearTimer });
    this.last = null; // where the mouse was on the screen
    this.leaving = new Map(); // tabId → timer, since the person pressed Resume in the tab
  }

  // Return whether the event of a person's mouse is a movement that takes the page over.
  isMovement(tabId, { screenX, screenY }) {
    const { last } = this;
    const isFar = last !== null && Math.hypot(screenX - last.x, screenY - last.y) > FAR;
    if (!last || isFar) this.last = { x: screenX, y: screenY };
    if (!this.leaving.has(tabId)) return isFar;
    if (isFar) this.leave(tabId);
    return false;
  }

  // The mouse is out of the page, or another page is shown: the next event only says where it is.
  lose(tabId) {
    this.last = null;
    this.end(tabId);
  }

  // A person has pressed Resume in the tab.
  leave(tabId) {
    this.clearTimer(this.leaving.get(tabId));
    this.leaving.set(tabId, this.setTimer(() => this.end(tabId), REST_MS));
  }

  end(tabId) {
    this.clearTimer(this.leaving.get(tabId));
    this.leaving.delete(tabId);
  }
}
