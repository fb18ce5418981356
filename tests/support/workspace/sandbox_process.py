"""Try a sandbox in a separate process:
`python -m tests.support.workspace.sandbox_process ROOT UID ERRNO`.

With a UID, the process runs as that user; with an ERRNO, openat2 fails with it. It prints JSON: the
result for each path, and whether openat2 was used.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from runners.workspace.errors import WorkspaceFailed
from runners.workspace.files.safe_open import has_openat2
from runners.workspace.files.sandbox import Sandbox
from tests.support.workspace.openat2_filter import refuse_openat2


def _result(sandbox: Sandbox, path: str, *, write: bool) -> str:
    try:
        if write:
            sandbox.replace(path, b"new")
            return "written"
        return sandbox.read(path, limit=1000).decode()
    except WorkspaceFailed as failed:
        return failed.code


def main(root: str, uid: str, errno: str) -> None:
    """Read or write the path in each line of stdin: `r path` or `w path`."""
    if int(uid):
        os.setgroups([])
        os.setgid(int(uid))
        os.setuid(int(uid))
    if int(errno):
        refuse_openat2(int(errno))
    results = {}
    with Sandbox(Path(root), {".git"}) as sandbox:
        for line in sys.stdin.read().splitlines():
            results[line] = _result(sandbox, line[2:], write=line[0] == "w")
        found = sandbox.find(".")
        results["walk"] = " ".join(sorted(found.files + found.folders))
    json.dump({"openat2": has_openat2(), "results": results}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
