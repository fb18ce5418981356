"""The one road of a tool call: request, policy, target, start, invoke, record, answer."""
