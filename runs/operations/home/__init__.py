"""The home folder of an installation: its paths, locks, state file and private Redis server."""
