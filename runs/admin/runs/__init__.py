"""Admin pages of runs: the list, one run with its steps and events, and the actions on it."""
