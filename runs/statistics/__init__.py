"""Statistics of ended runs and of the load, in periods: how they are counted, kept and read."""
