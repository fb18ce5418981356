"""The text of files that pages download; nothing here knows pages."""
