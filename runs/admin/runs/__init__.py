"""Admin pages of runs: the list, one run with its steps and calls, and the actions on it."""
