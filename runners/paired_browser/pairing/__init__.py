"""Who may connect: tickets, reconnect secrets, and the registry of paired browsers."""
