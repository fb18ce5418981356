"""The browser of a process: starting Chromium, pooled sessions, how many tabs work at once."""
