"""REST views and schemas of artifacts and uploads."""
