"""The workspace tools (S4), one file each."""
