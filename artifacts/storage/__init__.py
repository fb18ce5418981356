"""Storage of artifact bytes by their SHA-256: local files or an S3 bucket."""
