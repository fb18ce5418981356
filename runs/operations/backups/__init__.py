"""Backup and restore of an installation: `manage.py backup` and `manage.py restore`."""
