#!/usr/bin/env python
"""The command line of Continuity: `manage.py help` lists the commands."""

from __future__ import annotations

import errno
import gc
import os
import resource
import sys


def go_on_in_utf8() -> None:
    """Start this process anew in Python's UTF-8 mode where the locale has another encoding: names
    of files and arguments of programs are UTF-8 here. Returns where they are.
    """
    if sys.getfilesystemencoding() == "utf-8":
        return
    os.environ["PYTHONUTF8"] = "1"  # for the processes that this one starts
    os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606


def forbid_core_dumps() -> None:
    """Keep this process and those that it starts from writing core dumps: their memory has secrets.

    The limit is 1 byte, not 0: with it, Linux also starts no program that would receive the dump
    (a `|` in /proc/sys/kernel/core_pattern), which with 0 it does.
    """
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    size = 0 if hard == 0 else 1
    resource.setrlimit(resource.RLIMIT_CORE, (size, size))


def main() -> None:
    """Run a management command."""
    forbid_core_dumps()
    go_on_in_utf8()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if sys.argv[1:2] == ["mcp_stdio"]:
        from mcp_server.stdio.descriptors import take_over_stdio

        take_over_stdio()  # before a library is imported that might print
        gc.disable()  # faster imports; mcp_stdio enables it after its first response
    if sys.argv[1:2] == ["docker_runner"]:
        from runners.docker_runner.command_line import main as docker_runner

        sys.exit(docker_runner(sys.argv[2:]))  # it uses neither the database nor the settings
    _execute()


def _execute() -> None:
    """Run the command of the arguments; exit with one sentence for errors a user can correct."""
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured

    try:
        _ = settings.INSTALLED_APPS
    except ImproperlyConfigured as error:  # the message alone, without a traceback
        sys.exit(str(error))
    from runs.operations.home.errors import StackError

    try:
        try:
            _run_command()
        finally:  # flush here, where a failure to write is still handled below
            if sys.stdout is not None and not sys.stdout.closed:
                sys.stdout.flush()
    except StackError as error:  # for example a database without the migrations
        sys.exit(str(error))
    except BrokenPipeError:  # the reader of our output closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python flushes at exit
        sys.exit(141)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit("The disk is full. Free some space and try again.")


def _run_command() -> None:
    """Run the command of the arguments.

    Raises:
        DatabaseDamaged: The command failed because the database is damaged.
    """
    from django.core.management import execute_from_command_line
    from django.db import Error

    try:
        execute_from_command_line(sys.argv)
    except Error as error:
        from runs.operations.home.damage import damage_message
        from runs.operations.home.errors import DatabaseDamaged

        if (message := damage_message(error)) is None:
            raise
        raise DatabaseDamaged(message) from error


if __name__ == "__main__":
    main()
