"""Delivery of events to readers: one hub per web process, its subscribers, SSE and long polling."""
