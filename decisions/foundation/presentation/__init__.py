"""Formatting of values as text and as HTML fragments, for the admin site and the event pages."""
