"""What is remembered of a user (S2): state, objects, outcomes, and what is learned from these."""
