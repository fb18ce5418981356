"""Webhooks: telling an address that a run ended, signed, until it says that it heard."""
