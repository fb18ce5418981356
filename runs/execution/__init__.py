"""The engine: executes the steps of one claimed run, authorizes its tool calls and suspends it."""
