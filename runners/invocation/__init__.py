"""Invocation of a tool: validate its arguments, limit its time, call it, report the result."""
