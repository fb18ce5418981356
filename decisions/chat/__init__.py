"""POST /chat (S2): decide on a message before an agent acts on it; one step per module."""
