"""A soak: mixed work under bursts of faults, and what is true in the quiet after each burst."""
