"""The browser actions (runners/actions) on a page that a worker's own browser shows."""
