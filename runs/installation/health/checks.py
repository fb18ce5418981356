"""The checks of `manage.py doctor` that need no browser: what was found, and the way out."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from django.conf import settings
from django.core.exceptions import SuspiciousFileOperation
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, storages
from django.db import DatabaseError, connection

from runners.errors import ToolFailed
from runs.installation.home import redis_server
from runs.installation.home.errors import PortTaken
from runs.installation.home.listen import FIRST_PORT, listen
from runs.installation.home.paths import home_paths
from runs.installation.home.prepare import unapplied_migrations
from runs.installation.home.safety import KEY_LENGTH_MIN
from runs.installation.home.state import live_info
from runs.queries.totals import count_inconsistent_totals, missing_triggers

Verdict = Literal["ok", "note", "bad"]
MEGABYTE = 1024 * 1024
FREE_BYTES_NEEDED = 200 * MEGABYTE
FREE_BYTES_WANTED = 2048 * MEGABYTE
_FONT_PACKAGES = "apt-get install fontconfig fonts-wqy-microhei"
_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==(\S+) \\?$")


@dataclass(frozen=True)
class CheckResult:
    """What a check found; `recovery` is set when it is not ok."""

    verdict: Verdict
    name: str
    what: str
    recovery: str = ""


def check_parts() -> Iterator[CheckResult]:
    """Yield a finding for every part but the browser, each as soon as it is known."""
    yield check_python()
    yield check_packages()
    yield check_home()
    yield check_keys()
    yield check_database()
    yield check_totals()
    yield check_redis()
    yield check_artifacts()
    yield check_port()
    yield check_stack()
    yield check_egress()
    yield check_llm()
    yield check_fonts()


def check_python() -> CheckResult:
    """Python itself."""
    return CheckResult("ok", "python", f"{sys.version.split()[0]} ({sys.executable})")


def check_packages() -> CheckResult:
    """The installed packages against the pinned ones."""
    lock = Path(settings.BASE_DIR) / "requirements.lock"
    try:
        lines = lock.read_text().splitlines()
    except OSError:
        return CheckResult(
            "note", "packages", "requirements.lock is absent, so nothing was compared"
        )
    pins = [match.groups() for line in lines if (match := _PIN.match(line))]
    wrong = [name for name, version in pins if _installed(name) != version]
    if wrong:
        what = f"{len(wrong)} of {len(pins)} are not as pinned: {', '.join(wrong[:5])}"
        return CheckResult("bad", "packages", what, "Run `make setup`.")
    return CheckResult("ok", "packages", f"{len(pins)} as pinned")


def check_home() -> CheckResult:
    """CONTINUITY_HOME: private, writable, with room."""
    home: Path = settings.CONTINUITY_HOME
    free = shutil.disk_usage(home).free
    what = f"{home}, {free // MEGABYTE} MB free"
    if not os.access(home, os.W_OK | os.X_OK):
        recovery = "Set CONTINUITY_HOME to a folder of yours."
        return CheckResult("bad", "home", f"{home} cannot be written", recovery)
    if free < FREE_BYTES_NEEDED:
        return CheckResult(
            "bad", "home", what, "Free some space, or set CONTINUITY_HOME elsewhere."
        )
    if free < FREE_BYTES_WANTED:
        return CheckResult("note", "home", what, "Artifacts and screenshots will fill it soon.")
    return CheckResult("ok", "home", what)


def check_keys() -> CheckResult:
    """The keys that seal secrets and sign sessions."""
    keys: list[str] = settings.CONTINUITY_SECRET_KEYS
    if min(map(len, keys)) < KEY_LENGTH_MIN:
        return CheckResult(
            "bad",
            "keys",
            "one is too short to be safe",
            f"Set CONTINUITY_SECRET_KEYS to random keys of {KEY_LENGTH_MIN} characters or more.",
        )
    file = settings.CONTINUITY_HOME / "keys"
    if file.exists() and file.stat().st_mode & 0o077:
        return CheckResult(
            "bad", "keys", f"{file} can be read by others", f"Run `chmod 600 {file}`."
        )
    return CheckResult("ok", "keys", f"{len(keys)}, from {_key_source(file)}")


def check_database() -> CheckResult:
    """The database, its speed of answering aside: reachable, and as new as the code."""
    kind = "SQLite" if connection.vendor == "sqlite" else "PostgreSQL"
    where = connection.settings_dict["HOST"] or connection.settings_dict["NAME"]
    try:
        missing = unapplied_migrations()
    except DatabaseError as error:
        reason = str(error).strip().splitlines()[0]
        return CheckResult(
            "bad", "database", f"{kind}: {reason}", "Start it, or correct DATABASE_URL."
        )
    if missing:
        what = f"{kind} {where} lacks {len(missing)} migrations"
        return CheckResult("bad", "database", what, "Run `manage.py migrate`.")
    return CheckResult("ok", "database", f"{kind} {where}, schema up to date")


def check_totals() -> CheckResult:
    """How many runs there are, as the lists of runs tell it, against the rows themselves."""
    try:
        astray, lacking = count_inconsistent_totals(), len(missing_triggers())
    except DatabaseError:
        return CheckResult("note", "totals", "not checked: see the database")
    if astray or lacking:
        what = f"{astray} totals of runs are wrong, {lacking} triggers are missing"
        return CheckResult("bad", "totals", what, "Run `manage.py recount_runs`.")
    return CheckResult("ok", "totals", "the lists of runs count what is there")


def check_redis() -> CheckResult:
    """Redis: the private one or, where REDIS_URL names one, that."""
    if settings.REDIS_SOCKET is None:
        return _check_shared_redis()
    path = Path(settings.REDIS_SOCKET)
    if redis_server.is_responding(path):
        return CheckResult("ok", "redis", f"answers on {path}")
    binary = redis_server.find_binary()
    if binary is None:
        return CheckResult(
            "bad",
            "redis",
            "no redis-server or valkey-server was found",
            "Install one (Debian: `apt-get install redis-server`), or set REDIS_URL.",
        )
    return CheckResult("ok", "redis", f"not running; `manage.py up` starts {binary}")


def check_artifacts() -> CheckResult:
    """The artifact storage: what is written there comes back."""
    storage, probe = storages["artifacts"], uuid.uuid4().hex.encode()
    name = f"doctor/{probe.decode()}"
    kind = type(storage).__name__
    try:
        kept = storage.save(name, ContentFile(probe))
        with storage.open(kept) as file:
            same = file.read() == probe
        storage.delete(kept)
    except (OSError, SuspiciousFileOperation) as error:
        what = f"{kind}: {type(error).__name__}: {str(error)[:200]}"
        return CheckResult("bad", "artifacts", what, "Correct CONTINUITY_ARTIFACT_STORAGE.")
    if not same:
        return CheckResult(
            "bad", "artifacts", f"{kind} gave other bytes back", "Check the storage."
        )
    if not settings.EMBEDDED and isinstance(storage, FileSystemStorage):
        what = f"{storage.location}, written and read back: is it the same on every machine?"
        recovery = "Else name a bucket, or a folder that all share: CONTINUITY_ARTIFACT_STORAGE."
        return CheckResult("note", "artifacts", what, recovery)
    return CheckResult("ok", "artifacts", f"{kind}, written and read back")


def check_port() -> CheckResult:
    """The web part's usual port."""
    try:
        listen(FIRST_PORT).close()
    except PortTaken:
        info = live_info()
        if info is not None and info.url.endswith(f":{FIRST_PORT}"):
            return CheckResult("ok", "port", f"{FIRST_PORT}, ours")
        what = f"{FIRST_PORT} is in use by another program"
        return CheckResult(
            "note", "port", what, "`manage.py up` takes the next free one, and says so."
        )
    return CheckResult("ok", "port", f"{FIRST_PORT} is free")


def check_stack() -> CheckResult:
    """What is up."""
    info = live_info(home_paths())
    if info is None:
        return CheckResult("ok", "stack", "not up; `manage.py up` starts it")
    ill = [part.name for part in info.services if part.state != "ready"]
    if ill:
        recovery = f"See {home_paths().log(ill[0])}."
        return CheckResult("bad", "stack", f"{info.url}; not ready: {', '.join(ill)}", recovery)
    return CheckResult("ok", "stack", f"{info.url} ({info.mode}, process {info.pid})")


def check_egress() -> CheckResult:
    """How far remote callers reach."""
    opened = settings.CONTINUITY_EGRESS_ALLOW
    if not opened:
        return CheckResult("ok", "egress", "remote callers reach public addresses only")
    what = f"remote callers also reach {', '.join(map(str, opened))}"
    if any(place.includes_loopback for place in opened):
        recovery = "That is this machine itself; name single ports in CONTINUITY_EGRESS_ALLOW."
        return CheckResult("note", "egress", what, recovery)
    return CheckResult("ok", "egress", what)


def check_llm() -> CheckResult:
    """The model that agent runs use, asked for a word; nothing else needs one."""
    info = live_info(home_paths())
    if info is not None and info.model not in (None, settings.LLM.label):
        return _other_model(info.model or "")
    if not settings.LLM.model:
        recovery = "For agents, set CONTINUITY_LLM_MODEL and what it needs (docs/agents.md)."
        return CheckResult("note", "llm", "no model is set; only agents need one", recovery)
    # Here alone: a model's library is a second that the other commands do not need.
    from runners.llm.probe import probe_model

    try:
        told = asyncio.run(probe_model(settings.LLM))
    except ToolFailed as failed:
        recovery = "Correct CONTINUITY_LLM_…, or start the model's server; only agents need it."
        return CheckResult("bad", "llm", failed.message, recovery)
    return CheckResult("ok", "llm", told)


def check_fonts() -> CheckResult:
    """The fonts that screenshots need for Chinese, Japanese and Korean; reading needs none."""
    if sys.platform != "linux":
        return CheckResult("ok", "fonts", "those of the system")
    fc_list = shutil.which("fc-list")
    if fc_list is None:
        what = "fc-list is absent, so it is not known which characters screenshots show"
        return CheckResult("note", "fonts", what, f"Run `{_FONT_PACKAGES}` (Debian).")
    if subprocess.run([fc_list, "-q", ":lang=zh"], check=False).returncode != 0:
        what = "none for Chinese, Japanese or Korean: screenshots show boxes in their place"
        return CheckResult("note", "fonts", what, f"Run `{_FONT_PACKAGES}` (Debian).")
    return CheckResult("ok", "fonts", "Chinese characters are shown on screenshots")


def _other_model(of_stack: str) -> CheckResult:
    """What agents have is what the stack was started with, whatever is set here."""
    if not settings.LLM.model:
        told = f"the stack that is up has {of_stack}; none is set here, so it was not asked"
        return CheckResult(
            "note", "llm", told, "Set CONTINUITY_LLM_… here as well to have it asked."
        )
    told = f"{settings.LLM.label} is set here, but the stack that is up has {of_stack or 'none'}"
    recovery = "It keeps what it was started with: end it, and start it anew from here."
    return CheckResult("note", "llm", told, recovery)


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _key_source(file: Path) -> str:
    return "CONTINUITY_SECRET_KEYS" if os.environ.get("CONTINUITY_SECRET_KEYS") else str(file)


def _check_shared_redis() -> CheckResult:
    import redis  # a third of a second that the other commands do not need

    address = re.sub(r"//[^@/]*@", "//…@", settings.REDIS_URL)
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=3) as client:
            version = client.info("server").get("redis_version")
    except redis.RedisError as error:
        return CheckResult("bad", "redis", f"{address}: {error}", "Start it, or correct REDIS_URL.")
    return CheckResult("ok", "redis", f"{version} on {address}")
