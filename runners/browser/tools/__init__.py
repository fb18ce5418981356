"""The browser tools, one file each."""
