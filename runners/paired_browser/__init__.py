"""Paired browsers: pairing, registry, messages and calls; `extension` is the program in them.

Public names that may not change say `plugin` and `client`.
"""
