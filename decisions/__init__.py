"""Core of Continuity: principals, policy, decisions and confirmations, and the audit log."""
