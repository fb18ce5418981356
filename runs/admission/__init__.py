"""Admission of tool calls: policy, the target, and the statement that starts a call."""
