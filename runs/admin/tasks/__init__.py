"""Admin pages of tasks: the list, and one task with its chat and live page."""
