#!/usr/bin/env python
"""The one command of Continuity: `manage.py help` lists what it can do."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run a management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
