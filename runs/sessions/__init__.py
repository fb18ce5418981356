"""Named browser sessions: who may use one, the lease, and what is kept of it."""
