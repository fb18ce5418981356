"""The settings of the processes that the tests kill: short intervals, and failpoints."""

from config.settings import *  # noqa: F403

LEASE_BEAT_S = 0.3
LEASE_LOST_S = 2.0
LEASE_GIVE_UP_S = 1.5
POLL_S = 1.0
FAILPOINTS = True
