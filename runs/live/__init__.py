"""The live page of a task: people see what the agent sees, and work on it while they have it."""
