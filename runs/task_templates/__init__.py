"""Task templates: their base class, the registry, shared parts, and in `builtin` one per file."""
