"""The live page: a screencast of a page, a person's input on it, and its dialogs."""
