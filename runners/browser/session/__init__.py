"""One browser session: its context, tabs, crash handling and refused requests."""
