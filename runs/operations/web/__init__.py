"""The web server: its HTTP protocol, and the limits of its connections."""
