// What a person sees of a task, and takes over: the service worker's side of the overlay.

// Start with the modules of the service worker: {connection, tasks, runner, cdp}.
export function start() {}
