"""What is kept: bytes by their hash, chunks, expiry."""
