"""The messages of paired browsers, what a browser has open, and limits of what it may send."""
