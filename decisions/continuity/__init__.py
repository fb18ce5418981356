"""State, objects and outcomes of a user (S2)."""
