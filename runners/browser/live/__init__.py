"""A page as it changes, and a person's mouse and keyboard on it."""
