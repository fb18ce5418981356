"""Runs: templates, submission, the queue, execution, events, sessions, tasks and their APIs."""
