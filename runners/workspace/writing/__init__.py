"""Write files: previews, locks, idempotency keys, snapshots, line diffs, and crash recovery."""
