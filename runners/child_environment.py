"""The environment of child processes. This process's own has secrets: the database's address, the
keys that seal and sign, the language model's key. A child gets the variables of this list, and
those that its start names.
"""

from __future__ import annotations

import os

# What most programs need. The last one marks the processes of a stack, which ends them by it
# (runs/operations/supervision/watcher.py).
INHERITED = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "CONTINUITY_PART_OF",
)
# For programs that open connections of their own: where the machine's proxy is, in both spellings.
PROXIES = tuple(
    spelled
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
    for spelled in (name, name.lower())
)


def child_environment(*inherited: str, **values: str) -> dict[str, str]:
    """Return a minimal environment for a child process.

    Args:
        inherited: further variables of this process that the program needs; `PG*` for all whose
            name begins with PG.
        values: variables to set, instead of inherited values.
    """
    names = (*INHERITED, *inherited)
    prefixes = tuple(name.removesuffix("*") for name in names if name.endswith("*"))
    found = {
        name: value
        for name, value in os.environ.items()
        if name in names or name.startswith(prefixes)
    }
    return {"PATH": os.defpath, **found, **values}
