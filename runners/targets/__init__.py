"""Execution targets: configuration, choice of the target of a call, cache and REST API."""
