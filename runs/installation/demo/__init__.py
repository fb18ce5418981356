"""The first run: a small handbook served as a web site, and the job that reads it."""
