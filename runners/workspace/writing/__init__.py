"""Writes: previewed, locked, undone; the line diff and the snapshots."""
