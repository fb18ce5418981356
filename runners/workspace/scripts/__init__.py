"""Run and stop the scripts of a project's package.json."""
