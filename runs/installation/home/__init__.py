"""The home folder of an installation: paths, locks, start-up state and its private Redis."""
