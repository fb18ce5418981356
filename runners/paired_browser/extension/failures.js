// Failures of actions, with the codes, messages and details that actions on the worker's browser have.

// An action failed. `retryable` is about the failure itself; the server decides whether it repeats the action.
export class ActionFailed extends Error {
  constructor(code, message, details = {}, retryable = false) {
    super(message);
    this.code = code;
    this.details = details;
    this.retryable = retryable;
  }

  asError() {
    return { code: this.code, message: this.message, retryable: this.retryable, details: this.details };
  }
}

// The page navigated to another document while a call to it was in flight.
export class ContextLost extends Error {}

// The page did not answer in time.
export class TimedOut extends Error {}

// The debugger did not work before the input began: nothing was sent.
export class NotDispatched extends Error {}

// The page navigates to another document, which must not receive the input; `hasStarted`: part of it was sent before.
export class NavigatedAway extends Error {
  constructor(hasStarted = false) {
    super("the page navigates to another document");
    this.hasStarted = hasStarted;
  }
}

// Another element than the intended one was where the mouse pressed, or was to press. `hasPressed`: the button was pressed, and
// released outside of the page, so that nothing was clicked.
export class PressMissed extends Error {
  constructor(hasPressed) {
    super("the press missed the element");
    this.hasPressed = hasPressed;
  }
}

const kind = (code, retryable = false) => (message, details = {}) => new ActionFailed(code, message, details, retryable);

export const invalidParameter = kind("INVALID_PARAMETER");
export const invalidTarget = kind("INVALID_TARGET");
export const invalidTaskTab = kind("INVALID_TASK_TAB");
export const taskTabClosed = kind("TASK_TAB_CLOSED");
export const elementNotFound = kind("ELEMENT_NOT_FOUND", true);
export const navigationTimeout = kind("NAVIGATION_TIMEOUT", true);
export const textNotShown = kind("NAVIGATION_TIMEOUT");
export const navigationFailed = kind("STEP_EXECUTION_FAILED");
export const pageCrashed = kind("PAGE_CRASHED", true);
export const cdpUnavailable = kind("CDP_UNAVAILABLE", true);
export const cdpLost = kind("CDP_UNAVAILABLE");
export const cdpPermissionDenied = kind("CDP_PERMISSION_DENIED");
export const readabilityTooLarge = kind("READABILITY_TOO_LARGE");
export const uploadFailed = kind("ARTIFACT_UPLOAD_FAILED", true);
export const broken = kind("EXECUTION_ERROR");

export const isCode = (error, code) => error instanceof ActionFailed && error.code === code;
