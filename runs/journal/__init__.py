"""The step journal: what a worker records about steps, and how a run ends."""
