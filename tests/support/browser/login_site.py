"""A site with a login, written with Django (login_site_app.py).

It runs in a separate process, because Django in this process is configured for the product.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

USERNAME, PASSWORD = "alice-of-the-tests", "correct-horse-9417"
ROOT = Path(__file__).parents[3]


@contextlib.contextmanager
def login_site(folder: Path) -> Iterator[str]:
    """Yield the address of a running site; its database is stored in the folder."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.support.browser.login_site_app",
            str(folder),
            USERNAME,
            PASSWORD,
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://"), "the site did not start"
        yield address
    finally:
        process.kill()
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()
