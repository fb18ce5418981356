"""The observation of a page for a model: which lines of it, and what happened since the last."""
