"""Formatting of values, and HTML fragments that admin pages share."""
