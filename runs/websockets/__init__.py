"""The web side of the WebSockets of a task: its log and its live page."""
