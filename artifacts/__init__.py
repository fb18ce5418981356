"""Artifacts: files of runs and uploads, stored by SHA-256; chunks, downloads, expiry."""
