"""Tasks: conversations with the agent (S1 §2), in which each message of the user is one run."""
