"""The tools that the reference runner offers: one family a file."""
