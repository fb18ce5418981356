"""The demo of `manage.py up --demo`: a handbook served as a web site, and a run that reads it."""
