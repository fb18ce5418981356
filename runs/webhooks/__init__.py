"""Webhooks: signed POSTs when a run ends or a confirmation waits, retried until accepted."""
