"""Benchmarks: each script prints one line of JSON with our figures, the floor's of the same
minutes, and the ratio.
"""
