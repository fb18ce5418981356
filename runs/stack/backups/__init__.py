"""Backups of an installation, and their way back: `manage.py backup`, `manage.py restore`."""
