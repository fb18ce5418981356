"""Search: ripgrep where it is found, our own engine elsewhere, the same answers."""
