"""The browser actions of runners/actions, implemented for the worker's own browser."""
