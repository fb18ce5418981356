"""The live page of a task: stream the agent's page to viewers, and input from a person to it."""
