"""The scripted model: it reads the observation of a page alone, and follows a list of intents."""
