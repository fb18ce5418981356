"""Pages for people outside of the admin: a confirmation by its link, and the language of pages."""
