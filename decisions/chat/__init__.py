"""POST /chat: what happens to a message before anything is done about it, one step a file (S2)."""
