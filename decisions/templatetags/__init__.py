"""Template tags of the admin pages (Django fixes the name of this folder)."""
