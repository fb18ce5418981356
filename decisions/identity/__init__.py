"""Principals, bearer tokens and one-time login links."""
