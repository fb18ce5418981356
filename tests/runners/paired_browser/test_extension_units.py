"""The modules of the browser extension, tested with node; the browser is faked at its edge."""

from __future__ import annotations

import subprocess
from pathlib import Path

import playwright
import pytest

NODE = Path(playwright.__file__).parent / "driver/node"
SUITES = sorted(Path(__file__).parent.glob("extension/*.test.mjs"))


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.name.partition(".")[0])
def test_the_units_of_the_extension_pass(suite: Path) -> None:
    if not NODE.exists():
        pytest.fail("Playwright's driver has no node: run `make test`, which installs it.")
    command = [str(NODE), "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", "--test", str(suite)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
