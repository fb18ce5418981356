"""The ground: who may do what, what was decided, what was done."""
