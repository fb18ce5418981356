"""Tests of the search of runs."""
