"""What a chat message asks for: task type, language, impact and the L4 gate."""
