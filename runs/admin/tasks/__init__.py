"""Admin pages of tasks: the list, and one task with its conversation and live page."""
