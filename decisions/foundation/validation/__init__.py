"""Validation of input: the JSON parser's limits, JSON Schema, storable values."""
