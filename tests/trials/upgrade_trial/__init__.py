"""A rolling upgrade under load: processes of an older version and of this one on one database."""
