"""The browsers whose sockets a web process has, their messages, and their snapshots."""
