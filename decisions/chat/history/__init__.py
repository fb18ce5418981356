"""Similar events of a user's past: signatures, similarity and retrieval."""
