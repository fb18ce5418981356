"""The scripts of a project's package.json, run and ended."""
