"""The form that submits a run: fields made of a template's JSON Schema, and the pages with it."""
