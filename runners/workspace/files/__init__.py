"""The sandbox: the only code that reads, lists or replaces files below a workspace's root."""
