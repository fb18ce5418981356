"""The list of runs: filters, rows, saved views, actions on many runs, groups of failures."""
