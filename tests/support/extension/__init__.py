"""A real Chromium with the extension loaded, and a server that speaks the extension's protocol."""
