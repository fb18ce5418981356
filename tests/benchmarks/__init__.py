"""Benchmarks: each script prints one line of JSON with our result, the result of the floor (the
simplest implementation of the same work) measured in the same minutes, and their ratio."""
