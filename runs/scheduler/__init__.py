"""The scheduler process: periodic maintenance jobs and their intervals."""
