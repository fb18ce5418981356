"""What previews need: a server on loopback and a page that looks at it."""
