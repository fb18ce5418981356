"""The sandbox: every way to a workspace's files, and no other."""
