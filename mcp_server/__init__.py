"""The door for agent hosts."""
