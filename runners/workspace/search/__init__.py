"""Search files for lines that match an expression; ripgrep, if installed, only makes it faster."""
