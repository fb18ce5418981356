"""Pages that runs have read, cut so that a model can read on."""
