"""Tests of the observation of a page for a model."""
