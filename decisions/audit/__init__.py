"""The audit log: writing events, the hash chain, sealing, verification and evidence bundles."""
