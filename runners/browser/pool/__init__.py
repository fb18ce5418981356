"""The browsers of a worker: the Chromium process, pooled sessions and how many run at once."""
