"""What callers ask of a run: submit, cancel, retry, answer; validation and idempotency."""
