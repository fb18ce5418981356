"""The browsers that people paired by the extension: pairing, registry, messages, calls."""
