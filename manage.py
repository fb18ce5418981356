#!/usr/bin/env python
"""The one command of Continuity: `manage.py help` lists what it can do."""

from __future__ import annotations

import errno
import gc
import os
import sys


def go_on_in_utf8() -> None:
    """Start this process anew in Python's UTF-8 mode where the locale has another encoding: names
    of files and arguments of programs are UTF-8 here. Returns where they are.
    """
    if sys.getfilesystemencoding() == "utf-8":
        return
    os.environ["PYTHONUTF8"] = "1"  # for the processes that this one starts
    os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606


def main() -> None:
    """Run a management command."""
    go_on_in_utf8()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if sys.argv[1:2] == ["mcp_stdio"]:
        from mcp_server.stdio.descriptors import take_over_stdio

        take_over_stdio()  # before any library is loaded that might print
        gc.disable()  # what is imported now stays; the door collects from its first answer on
    if sys.argv[1:2] == ["docker_runner"]:
        from runners.docker_runner.command_line import main as run_hands

        sys.exit(run_hands(sys.argv[2:]))  # it has no database, and no use for settings
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        _ = settings.INSTALLED_APPS
    except ImproperlyConfigured as error:  # what is set wrong is said in one sentence
        sys.exit(str(error))
    try:
        try:
            execute_from_command_line(sys.argv)
        finally:  # here, where it can still be said that it did not come through
            if sys.stdout is not None and not sys.stdout.closed:
                sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output has heard enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python still wants to write
        sys.exit(141)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit("The disk is full: nothing more can be written. Free some space and try again.")


if __name__ == "__main__":
    main()
