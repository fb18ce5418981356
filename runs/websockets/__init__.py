"""The WebSockets of a task in the web process: its log, and its live page."""
