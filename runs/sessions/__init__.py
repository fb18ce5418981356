"""Named browser sessions: operations for callers, their use by runs, and pages held for suspended
runs.
"""
