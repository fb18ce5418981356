"""Write the output of an export command to a file or to stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError


def write_bundle(command: BaseCommand, lines: Iterator[bytes], output: str | None) -> None:
    """Write the lines to a new file, readable by its owner alone, or to stdout.

    Raises:
        CommandError: The file exists or cannot be written. No partial file is left.
    """
    if output is None:
        for line in lines:
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        return
    try:
        file = os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    except FileExistsError:
        raise CommandError(f"{output} exists already; name a new file.") from None
    except OSError as error:
        raise CommandError(f"{output} cannot be written: {error.strerror}.") from None
    try:
        with file:
            file.writelines(lines)
    except BaseException:
        Path(output).unlink()
        raise
    command.stderr.write(f"Written to {output}.")
