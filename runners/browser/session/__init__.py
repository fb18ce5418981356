"""One browser session: its browser context, tabs, crash handling and refused requests."""
