"""The task templates, one file each; adding a template is adding a file here."""
