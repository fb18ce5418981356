"""Install what `make run` or `make test` needs: `python3 .ci/setup.py run|test`.

Prints one line per step and nothing if all is installed; an error message says what to do. Safe to
repeat, also after an interruption, and to run twice at the same time. Uses only the standard
library, and no syntax that Pythons below its version check lack.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
UV = VENV / "bin" / "uv"
LOCKS = {"run": ROOT / "requirements.lock", "test": ROOT / "requirements-dev.lock"}
INSTALLER = ROOT / ".ci" / "installer.lock"
CHROMIUM_PATH_FILE = VENV / "chromium"
FONTS_TRIED_FILE = VENV / "fonts-were-installed"
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
# The interpreter that creates .venv, even if this runs in a broken .venv.
BASE_PYTHON = getattr(sys, "_base_executable", sys.executable)
NEWER_PYTHONS = ("python3.14", "python3.13", "python3.12", "python3.11")
OPTIONAL_PROGRAMS = {
    "redis-server": "no redis-server: the tests use the valkey-server of a Python package",
    "ripgrep": "no ripgrep: the tests that compare with it are skipped",
    "bubblewrap": "no bubblewrap: the tests of the runner's sandbox are skipped",
    "nginx": "no nginx: the tests of the proxy's configuration are skipped",
    "pgbouncer": "no pgbouncer: the tests with a pooler are skipped",
    "chromium": "no chromium: the tests of the browser extension are skipped",
    "xvfb": "no xvfb: the tests of a takeover with a real mouse are skipped",
    "xdotool": "no xdotool: the tests of a takeover with a real mouse are skipped",
}
APT = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120")


class SetupFailed(Exception):
    """A step failed; the message says which one, and what to do."""


def main(level: str) -> None:
    """Install what a level ("run" or "test") needs; takes milliseconds if it is installed."""
    # Commands start three times as fast with compiled modules.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    lock = os.open(ROOT / ".ci", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.chdir(ROOT)
    if not is_stamped(level):
        create_venv()
        install_packages(level)
    if level == "test":
        install_debian_packages(missing_programs())
    get_chromium()
    if level == "test":
        install_debian_packages(missing_screen_programs())
    install_fonts()


# --- .venv ------------------------------------------------------------------------------------


def create_venv() -> None:
    """Create .venv, unless there is one with pip or uv."""
    if PYTHON.exists() and (has_pip(PYTHON) or UV.exists()):
        return
    with step("Python environment in .venv"):
        done = run(BASE_PYTHON, "-m", "venv", "--clear", VENV)
        if done.returncode != 0 and can_apt():
            apt_install(f"python{VERSION}-venv")
            done = run(BASE_PYTHON, "-m", "venv", "--clear", VENV)
        if done.returncode != 0 and has_pip(BASE_PYTHON):
            done = run(BASE_PYTHON, "-m", "venv", "--clear", "--without-pip", VENV)
        elif done.returncode != 0 and shutil.which("uv"):
            shutil.rmtree(VENV, ignore_errors=True)
            done = run("uv", "venv", "--quiet", "--seed", "--python", BASE_PYTHON, VENV)
    if done.returncode != 0:
        shutil.rmtree(VENV, ignore_errors=True)
        raise SetupFailed(
            "This Python cannot create a virtual environment. Install what it lacks (Debian:"
            f" `apt-get install python{VERSION}-venv`), or use another with `make PYTHON=… …`."
        )


def has_pip(python: str | Path) -> bool:
    """Return whether an interpreter has pip."""
    return run(python, "-c", "import pip").returncode == 0


def install_packages(level: str) -> None:
    """Install the pinned packages of a level with uv, or with pip if uv cannot be installed."""
    lock = LOCKS[level]
    pinned = sum("==" in line for line in lock.read_text().splitlines() if line[0] not in " #")
    with step(f"{pinned} Python packages of {lock.name}"):
        done = install_with_uv(lock)
        if done is None or done.returncode != 0:
            done = pip_install("--no-deps", "-r", lock)
    if done.returncode != 0:
        raise SetupFailed(
            f"The packages of {lock.name} could not be installed: {last_line(done)}\n"
            "Check that pip can reach a package index (it uses pip's own settings), then repeat."
        )
    stamp_file(level).write_text(stamp(level))


def install_with_uv(lock: Path) -> subprocess.CompletedProcess[str] | None:
    """Install with uv into .venv; None if uv itself cannot be installed."""
    if not UV.exists():
        pip_install("-r", INSTALLER)
    if not UV.exists():
        return None
    limits = {"UV_HTTP_TIMEOUT": "30", "UV_HTTP_RETRIES": "1", "UV_SYSTEM_CERTS": "1"}
    return run(
        *(UV, "pip", "install", "--quiet", "--no-config", "--python", PYTHON),
        *("--require-hashes", "--no-deps", "--compile-bytecode", "-r", lock),
        # In this locale the interpreter reports its paths to uv in UTF-8, whatever the user's is.
        env={**os.environ, **limits, "LC_ALL": "C"},
    )


def pip_install(*what: str | Path) -> subprocess.CompletedProcess[str]:
    """Install with the pip of .venv, or with that of the Python that created it."""
    pip = [PYTHON, "-m", "pip"]
    if not has_pip(PYTHON):
        pip = [BASE_PYTHON, "-m", "pip", "--python", PYTHON]
    options = ("--quiet", "--no-input", "--disable-pip-version-check")
    return run(*pip, "install", *options, "--require-hashes", *what)


def is_stamped(level: str) -> bool:
    """Return whether .venv has the packages of the level, or of the larger one, as now pinned."""
    if not PYTHON.exists():
        return False
    levels = [level] if level == "test" else ["run", "test"]
    return any(
        stamp_file(one).exists() and stamp_file(one).read_text() == stamp(one) for one in levels
    )


def stamp_file(level: str) -> Path:
    """Return the path of a level's stamp, which is in .venv and is deleted with it."""
    return VENV / f"installed-{level}"


def stamp(level: str) -> str:
    """Return a digest of the pinned packages and the interpreter."""
    facts = LOCKS[level].read_bytes() + (VENV / "pyvenv.cfg").read_bytes()
    return hashlib.sha256(facts + os.fsencode(PYTHON.resolve())).hexdigest()


# --- other programs ---------------------------------------------------------------------------


def install_debian_packages(wanted: Sequence[str]) -> None:
    """Install packages with programs of the tests, or print which tests are skipped without them.

    Servers that are running are not changed.
    """
    if not wanted:
        return
    if can_apt():
        with step(f"{' and '.join(wanted)} (Debian packages)"):
            done = apt_install(*wanted)
        if done.returncode != 0:
            raise SetupFailed(
                f"apt-get could not install {' '.join(wanted)}: {last_line(done)}\n"
                "Install them yourself, then repeat."
            )
    elif "postgresql" in wanted:
        raise SetupFailed(
            "The tests need PostgreSQL's server programs, and only root can install them. Run"
            " `apt-get install postgresql` (or your system's equivalent) as root, then repeat."
        )
    else:
        for program in wanted:
            write(f"  {OPTIONAL_PROGRAMS[program]}\n")


def missing_programs() -> list[str]:
    """Return the Debian packages that are not installed: PostgreSQL, Redis, ripgrep (tests compare
    with it), bubblewrap (the runner's sandbox), nginx (it runs the proxy's configuration)
    and pgbouncer (a pooler of PostgreSQL's connections).
    """
    installed = list(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    programs = {
        "postgresql": installed or shutil.which("postgres"),
        "redis-server": shutil.which("redis-server"),
        "ripgrep": shutil.which("rg"),
        "bubblewrap": shutil.which("bwrap"),
        "nginx": shutil.which("nginx") or Path("/usr/sbin/nginx").exists(),
        "pgbouncer": shutil.which("pgbouncer") or Path("/usr/sbin/pgbouncer").exists(),
    }
    return [package for package, found in programs.items() if not found]


def missing_screen_programs() -> list[str]:
    """Return the Debian packages that are not installed: a Chromium that loads extensions, a screen
    and a mouse for it. They are for the extension's tests only: the product uses the smaller
    headless shell, if it is installed first.
    """
    chromium = any(shutil.which(name) for name in ("chromium", "chromium-browser"))
    programs = {
        "chromium": chromium,
        "xvfb": shutil.which("Xvfb"),
        "xdotool": shutil.which("xdotool"),
    }
    return [package for package, found in programs.items() if not found]


def get_chromium() -> None:
    """Find or install a Chromium."""
    with contextlib.suppress(OSError):
        if os.access(CHROMIUM_PATH_FILE.read_text(), os.X_OK):
            return
    found = call_chromium_module("find_chromium()")
    if found.returncode != 0:
        with step("Chromium"):
            found = call_chromium_module("obtain_chromium(print)")
    path = last_line(found)
    if found.returncode != 0:
        raise SetupFailed(path.partition("ChromiumMissing: ")[2] or f"No Chromium: {path}")
    check_driver()
    with contextlib.suppress(OSError):  # .venv belongs to another user
        CHROMIUM_PATH_FILE.write_text(path)


def check_driver() -> None:
    """Check that Playwright's driver runs; installs the C library that it can lack."""
    node = next(VENV.glob("lib/python3*/site-packages/playwright/driver/node"), "node")
    done = run(node, "--version")
    if done.returncode != 0 and can_apt():
        with step("libatomic1 (Debian package)"):
            apt_install("libatomic1")
        done = run(node, "--version")
    if done.returncode != 0:
        raise SetupFailed(
            f"Playwright's driver does not run: {last_line(done)}\n"
            "Install what it lacks (Debian: `apt-get install libatomic1`), then repeat."
        )


def install_fonts() -> None:
    """Install a font with Chinese, Japanese and Korean characters for screenshots.

    Tries once: only screenshots need it.
    """
    if sys.platform != "linux" or has_cjk_font():
        return
    if can_apt() and not FONTS_TRIED_FILE.exists():
        with step("fonts (Debian packages)"):
            if not shutil.which("fc-list"):
                apt_install("fontconfig")
            if not has_cjk_font():
                apt_install("fonts-wqy-microhei")
        with contextlib.suppress(OSError):  # .venv belongs to another user
            FONTS_TRIED_FILE.touch()
    if not has_cjk_font():
        write(
            "  No font for Chinese, Japanese or Korean was found: screenshots show boxes in place"
            " of these characters (Debian: `apt-get install fontconfig fonts-wqy-microhei`)\n"
        )


def has_cjk_font() -> bool:
    """Return whether an installed font has Chinese characters."""
    fc_list = shutil.which("fc-list")
    return fc_list is not None and run(fc_list, "-q", ":lang=zh").returncode == 0


def call_chromium_module(call: str) -> subprocess.CompletedProcess[str]:
    """Call a function of runners.browser.pool.chromium with .venv's Python; the last line of the
    output is the browser's path.
    """
    return run(PYTHON, "-c", f"from runners.browser.pool.chromium import *; print({call}.path)")


def can_apt() -> bool:
    """Return whether Debian packages can be installed here."""
    return os.getuid() == 0 and shutil.which("apt-get") is not None


def apt_install(*packages: str) -> subprocess.CompletedProcess[str]:
    """Install Debian packages without starting their services."""
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    command = (*APT, "install", "-y", "--no-install-recommends", *packages)
    done = run(*command, env=env)
    if done.returncode != 0:  # the package lists are missing or outdated
        run(*APT, "update", env=env)
        done = run(*command, env=env)
    return done


# --- commands and output ----------------------------------------------------------------------


def run(
    *command: str | Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program and capture its output, which is printed only if it fails."""
    return subprocess.run(
        [str(word) for word in command],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    """Print what is being done, and how many seconds it took."""
    write(f"  {what} … ")
    started = time.monotonic()
    try:
        yield
    finally:
        write(f"{time.monotonic() - started:.0f} s\n")


def write(text: str) -> None:
    """Write to stdout without buffering."""
    sys.stdout.write(text)
    sys.stdout.flush()


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line of a program's output."""
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return lines[-1][:300] if lines else f"exit {done.returncode} without output"


def require_python() -> None:
    """Restart in a newer Python if this one is too old; returns only in Python 3.11 or newer."""
    if sys.version_info >= (3, 11):  # noqa: UP036  (this runs in older Pythons too)
        return
    for name in NEWER_PYTHONS:
        if shutil.which(name):
            os.execvp(name, [name, *sys.argv])  # noqa: S606
    raise SetupFailed(
        f"Python 3.11 or newer is required, this is {sys.version.split()[0]}."
        " Install one, or name its path: `make PYTHON=… run`."
    )


def start(arguments: Sequence[str]) -> int:
    """Run `main` and return the exit status."""
    sys.stdout.reconfigure(errors="replace")  # the locale may lack characters
    try:
        require_python()
        main(arguments[0])
    except SetupFailed as failed:
        write(f"{failed}\n")
        return 1
    except OSError as exc:
        write(f"{exc.filename or ROOT} cannot be used: {exc.strerror}. Use a folder of your own.\n")
        return 1
    except KeyboardInterrupt:
        write("\nInterrupted; run it again to continue.\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:]))
