#!/usr/bin/env python
"""The one command of Continuity: `manage.py help` lists what it can do."""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    """Run a management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if sys.argv[1:2] == ["mcp_stdio"]:
        from mcp_server.wire import claim_wire

        claim_wire()  # before any library is loaded that might print
        gc.disable()  # what is imported now stays; the door collects from its first answer on
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        _ = settings.INSTALLED_APPS
    except ImproperlyConfigured as error:  # what is set wrong is said in one sentence
        sys.exit(str(error))
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
