"""The work: templates, runs, steps, events, the engine."""
