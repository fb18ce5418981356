"""Set up what `make run` or `make test` needs: `python3 .ci/setup.py run|test`.

Says one line for each thing it does, nothing when there is nothing to do, and fails with one
sentence and the way out. Safe to repeat, also after it was interrupted, and to start twice at once.
Standard library alone, and no syntax newer than its check of the version.
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
CHROMIUM_MEMO = VENV / "chromium"
FONTS_MEMO = VENV / "fonts-were-installed"
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
# The interpreter that .venv is made with, also when this runs in a .venv that does not work.
BASE_PYTHON = getattr(sys, "_base_executable", sys.executable)
NEWER = ("python3.14", "python3.13", "python3.12", "python3.11")
WITHOUT = {
    "redis-server": "redis-server is absent; the tests use the valkey-server of a Python package",
    "ripgrep": "ripgrep is absent; the tests that compare with it are left out",
    "bubblewrap": "bubblewrap is absent; the tests of what commands cannot escape are left out",
    "docker-compose": "docker-compose is absent; its word on compose.yaml is left out",
}
APT = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120")


class SetupFailed(Exception):
    """One thing could not be done; the message says which, and what to do."""


def main(level: str) -> None:
    """Bring the machine to the level; a few milliseconds when it is there."""
    # Compiled modules start three times as fast, whatever the caller's environment says.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    guard = os.open(ROOT / ".ci", os.O_RDONLY)
    fcntl.flock(guard, fcntl.LOCK_EX)
    os.chdir(ROOT)
    if not is_stamped(level):
        make_venv()
        install_packages(level)
    if level == "test":
        install_servers()
    get_chromium()
    install_fonts()


# --- .venv ------------------------------------------------------------------------------------


def make_venv() -> None:
    """Make .venv, unless there is one that packages can be installed into."""
    if PYTHON.exists() and (has_pip(PYTHON) or UV.exists()):
        return
    with step("Python environment in .venv"):
        made = run(BASE_PYTHON, "-m", "venv", "--clear", VENV)
        if made.returncode != 0 and can_apt():
            apt_install(f"python{VERSION}-venv")
            made = run(BASE_PYTHON, "-m", "venv", "--clear", VENV)
        if made.returncode != 0 and has_pip(BASE_PYTHON):
            made = run(BASE_PYTHON, "-m", "venv", "--clear", "--without-pip", VENV)
        elif made.returncode != 0 and shutil.which("uv"):
            shutil.rmtree(VENV, ignore_errors=True)
            made = run("uv", "venv", "--quiet", "--seed", "--python", BASE_PYTHON, VENV)
    if made.returncode != 0:
        shutil.rmtree(VENV, ignore_errors=True)
        raise SetupFailed(
            "This Python cannot make a virtual environment. Install what it lacks (Debian:"
            f" `apt-get install python{VERSION}-venv`), or name another with `make PYTHON=… …`."
        )


def has_pip(python: str | Path) -> bool:
    """Tell whether an interpreter has pip."""
    return run(python, "-c", "import pip").returncode == 0


def install_packages(level: str) -> None:
    """Install the pinned packages of a level: with uv where it can be had, else with pip."""
    lock = LOCKS[level]
    pinned = sum("==" in line for line in lock.read_text().splitlines() if line[0] not in " #")
    with step(f"{pinned} Python packages of {lock.name}"):
        done = install_with_uv(lock)
        if done is None or done.returncode != 0:
            done = pip_install("--no-deps", "-r", lock)
    if done.returncode != 0:
        raise SetupFailed(
            f"The packages of {lock.name} could not be installed: {last_line(done)}\n"
            "Check that a package index can be reached (pip's own settings are used), then repeat."
        )
    stamp_file(level).write_text(stamp(level))


def install_with_uv(lock: Path) -> subprocess.CompletedProcess[str] | None:
    """Install with uv inside .venv; None where uv cannot be had."""
    if not UV.exists():
        pip_install("-r", INSTALLER)
    if not UV.exists():
        return None
    patience = {"UV_HTTP_TIMEOUT": "30", "UV_HTTP_RETRIES": "1", "UV_SYSTEM_CERTS": "1"}
    return run(
        *(UV, "pip", "install", "--quiet", "--no-config", "--python", PYTHON),
        *("--require-hashes", "--no-deps", "--compile-bytecode", "-r", lock),
        env={**os.environ, **patience},
    )


def pip_install(*what: str | Path) -> subprocess.CompletedProcess[str]:
    """Install with pip: .venv's own, else the one of the Python that made it."""
    pip = [PYTHON, "-m", "pip"]
    if not has_pip(PYTHON):
        pip = [BASE_PYTHON, "-m", "pip", "--python", PYTHON]
    quietly = ("--quiet", "--no-input", "--disable-pip-version-check")
    return run(*pip, "install", *quietly, "--require-hashes", *what)


def is_stamped(level: str) -> bool:
    """Tell whether .venv holds the packages of the level, or of the larger one, as they are now."""
    if not PYTHON.exists():
        return False
    levels = [level] if level == "test" else ["run", "test"]
    return any(
        stamp_file(one).exists() and stamp_file(one).read_text() == stamp(one) for one in levels
    )


def stamp_file(level: str) -> Path:
    """Return where the stamp of a level lies: it goes with the environment."""
    return VENV / f"installed-{level}"


def stamp(level: str) -> str:
    """Return what changes when the pinned packages or the interpreter do."""
    facts = LOCKS[level].read_bytes() + (VENV / "pyvenv.cfg").read_bytes()
    return hashlib.sha256(facts + os.fsencode(PYTHON.resolve())).hexdigest()


# --- what is no Python package ----------------------------------------------------------------


def install_servers() -> None:
    """Have the server programs of PostgreSQL and Redis, ripgrep, which tests compare with,
    bubblewrap, which the reference runner uses, and docker-compose, which reads compose.yaml;
    servers that run already are not touched.
    """
    wanted = missing_programs()
    if not wanted:
        return
    if can_apt():
        with step(f"{' and '.join(wanted)} (Debian packages)"):
            done = apt_install(*wanted)
        if done.returncode != 0:
            raise SetupFailed(
                f"apt-get could not install {' '.join(wanted)}: {last_line(done)}\n"
                "Install them by hand, then repeat."
            )
    elif "postgresql" in wanted:
        raise SetupFailed(
            "The tests need PostgreSQL's server programs, and you may not install them here."
            " Have `apt-get install postgresql` (or your system's like) done, then repeat."
        )
    else:
        for program in wanted:
            say(f"  {WITHOUT[program]}\n")


def missing_programs() -> list[str]:
    """Return the Debian packages whose programs are not here."""
    installed = list(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    there = {
        "postgresql": installed or shutil.which("postgres"),
        "redis-server": shutil.which("redis-server"),
        "ripgrep": shutil.which("rg"),
        "bubblewrap": shutil.which("bwrap"),
        "docker-compose": shutil.which("docker-compose"),
    }
    return [package for package, found in there.items() if not found]


def get_chromium() -> None:
    """Have a Chromium, found or installed."""
    with contextlib.suppress(OSError):
        if os.access(CHROMIUM_MEMO.read_text(), os.X_OK):
            return
    found = ask_product("find_chromium()")
    if found.returncode != 0:
        with step("Chromium"):
            found = ask_product("obtain_chromium(print)")
    path = last_line(found)
    if found.returncode != 0:
        raise SetupFailed(path.partition("ChromiumMissing: ")[2] or f"No Chromium: {path}")
    prove_driver()
    with contextlib.suppress(OSError):  # another user's .venv serves as well
        CHROMIUM_MEMO.write_text(path)


def prove_driver() -> None:
    """Have the program that drives the browser run: a Python package that needs a C library."""
    node = next(VENV.glob("lib/python3*/site-packages/playwright/driver/node"), "node")
    done = run(node, "--version")
    if done.returncode != 0 and can_apt():
        with step("libatomic1 (Debian package)"):
            apt_install("libatomic1")
        done = run(node, "--version")
    if done.returncode != 0:
        raise SetupFailed(
            f"The browser's driver cannot run: {last_line(done)}\n"
            "Install what it lacks (Debian: `apt-get install libatomic1`), then repeat."
        )


def install_fonts() -> None:
    """Have a font with Chinese, Japanese and Korean characters for screenshots, tried once; pages
    are read without it as well.
    """
    if sys.platform != "linux" or has_cjk_font():
        return
    if can_apt() and not FONTS_MEMO.exists():
        with step("fonts (Debian packages)"):
            if not shutil.which("fc-list"):
                apt_install("fontconfig")
            if not has_cjk_font():
                apt_install("fonts-wqy-microhei")
        with contextlib.suppress(OSError):  # another user's .venv serves as well
            FONTS_MEMO.touch()
    if not has_cjk_font():
        say(
            "  No font for Chinese, Japanese or Korean was found: screenshots show boxes in place"
            " of these characters (Debian: `apt-get install fontconfig fonts-wqy-microhei`)\n"
        )


def has_cjk_font() -> bool:
    """Tell whether a font here has Chinese characters."""
    found = shutil.which("fc-list")
    return found is not None and run(found, "-q", ":lang=zh").returncode == 0


def ask_product(call: str) -> subprocess.CompletedProcess[str]:
    """Call a function of runners.browser.pool.chromium in .venv; its last line is the browser's
    path.
    """
    return run(PYTHON, "-c", f"from runners.browser.pool.chromium import *; print({call}.path)")


def can_apt() -> bool:
    """Tell whether Debian packages can be installed here."""
    return os.getuid() == 0 and shutil.which("apt-get") is not None


def apt_install(*packages: str) -> subprocess.CompletedProcess[str]:
    """Install Debian packages without starting the services that they bring."""
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    command = (*APT, "install", "-y", "--no-install-recommends", *packages)
    done = run(*command, env=env)
    if done.returncode != 0:  # the lists are missing, or too old for what the mirror has
        run(*APT, "update", env=env)
        done = run(*command, env=env)
    return done


# --- talking ----------------------------------------------------------------------------------


def run(
    *command: str | Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program without a word; its output is kept for the case that it fails."""
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
    """Say what is being done, and how long it took."""
    say(f"  {what} … ")
    began = time.monotonic()
    try:
        yield
    finally:
        say(f"{time.monotonic() - began:.0f} s\n")


def say(text: str) -> None:
    """Write at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the end of what a program said."""
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return lines[-1][:300] if lines else f"exit {done.returncode}, without a word"


def leave_old_python() -> None:
    """Go on in a Python that is new enough; returns in one."""
    if sys.version_info >= (3, 11):  # noqa: UP036  (this is where older ones are turned away)
        return
    for name in NEWER:
        if shutil.which(name):
            os.execvp(name, [name, *sys.argv])  # noqa: S606
    raise SetupFailed(
        f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}."
        " Install one, or name one with `make PYTHON=… run`."
    )


def start(arguments: Sequence[str]) -> int:
    """Run and return the exit status."""
    sys.stdout.reconfigure(errors="replace")  # a locale's encoding may lack letters of ours
    try:
        leave_old_python()
        main(arguments[0])
    except SetupFailed as failed:
        say(f"{failed}\n")
        return 1
    except OSError as exc:
        say(f"{exc.filename or ROOT} cannot be used: {exc.strerror}. Use a folder that is yours.\n")
        return 1
    except KeyboardInterrupt:
        say("\nInterrupted; it goes on from here next time.\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:]))
