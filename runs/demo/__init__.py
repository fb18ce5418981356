"""The first run: a small handbook as a web site, and the job that reads it."""
