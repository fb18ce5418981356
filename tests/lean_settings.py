"""The settings without the web and the admin, as `mcp_stdio` has them, for other processes of tests
and benchmarks: they start faster.
"""

from config.settings import *  # noqa: F403
from config.settings import OUR_APPS

INSTALLED_APPS = OUR_APPS
