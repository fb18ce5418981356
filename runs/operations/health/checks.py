"""The checks of `manage.py doctor` that need no browser: a result and, if not ok, what to do."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import re
import resource
import shutil
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from smtplib import SMTPException
from typing import Literal, NamedTuple

from django.conf import settings
from django.core.exceptions import SuspiciousFileOperation
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, storages
from django.core.mail import get_connection as get_mail_connection
from django.db import Error, connection
from packaging.requirements import Requirement

from decisions.audit.chain import newest_cut
from decisions.audit.checkpoints import is_in_chain, newest_checkpoint
from decisions.foundation.infra.redis import describe_redis_fault
from decisions.foundation.presentation.formatting import ago
from decisions.foundation.security.loopback import is_loopback
from decisions.identity.tokens import (
    EXPIRY_WARNING,
    list_expiring_tokens,
    list_tokens_that_cannot_confirm,
)
from runners.browser.pool.driver import browser_environment
from runners.errors import ToolFailed
from runners.models import PluginClient
from runners.paired_browser.pairing.selectors import connected_browsers
from runs.operations.health.processes import ProcessState, list_processes
from runs.operations.health.status import describe_audit_fault
from runs.operations.health.web_probe import describe_web_fault
from runs.operations.home import redis_server
from runs.operations.home.damage import RECOVERY, damage_message, describe, find_damage
from runs.operations.home.errors import PortTaken
from runs.operations.home.listen import FIRST_PORT, listen
from runs.operations.home.paths import home_paths
from runs.operations.home.pooling import pools_transactions
from runs.operations.home.prepare import POOLING_NOT_SET, unapplied_migrations
from runs.operations.home.safety import KEY_LENGTH_MIN
from runs.operations.home.state import is_up, live_info
from runs.queries.totals import count_inconsistent_totals, missing_triggers

Verdict = Literal["ok", "note", "bad"]
MEGABYTE = 1024 * 1024
FREE_BYTES_NEEDED = 200 * MEGABYTE
FREE_BYTES_WANTED = 2048 * MEGABYTE
_WITHOUT_REDIS = "Until it works, runs are found by polling (docs/wake-ups.md, Without Redis)."
_FONT_PACKAGES = "apt-get install fontconfig fonts-wqy-microhei"


class Finding(NamedTuple):
    """What a check found; `recovery` says what to do if it is not ok."""

    verdict: Verdict
    what: str
    recovery: str = ""


def ok(what: str) -> Finding:
    """Return that all is well."""
    return Finding("ok", what)


def note(what: str, recovery: str = "") -> Finding:
    """Return something to know, without which runs work."""
    return Finding("note", what, recovery)


def bad(what: str, recovery: str = "") -> Finding:
    """Return that something which runs need is broken."""
    return Finding("bad", what, recovery)


def check_python() -> Finding:
    """Report the Python version."""
    return ok(f"{sys.version.split()[0]} ({sys.executable})")


def check_packages() -> Finding:
    """Compare the installed packages with the pinned ones."""
    lock = Path(settings.BASE_DIR) / "requirements.lock"
    try:
        lines = lock.read_text().splitlines()
    except OSError:
        return note("requirements.lock is missing, so nothing was compared")
    pinned = [Requirement(line.removesuffix("\\")) for line in lines if line[:1].isalnum()]
    pins = [pin for pin in pinned if pin.marker is None or pin.marker.evaluate()]
    wrong = [pin.name for pin in pins if not _is_as_pinned(pin)]
    if wrong:
        what = f"{len(wrong)} of {len(pins)} differ from the pinned: {', '.join(wrong[:5])}"
        return bad(what, "Run `make setup`.")
    return ok(f"{len(pins)} as pinned")


def check_home() -> Finding:
    """Check that CONTINUITY_HOME is writable and has free space."""
    home: Path = settings.CONTINUITY_HOME
    free = shutil.disk_usage(home).free
    what = f"{home}, {free // MEGABYTE} MB free"
    if not os.access(home, os.W_OK | os.X_OK):
        recovery = "Set CONTINUITY_HOME to a folder that you can write."
        return bad(f"{home} cannot be written", recovery)
    if free < FREE_BYTES_NEEDED:
        return bad(what, "Free some space, or set CONTINUITY_HOME to another disk.")
    if free < FREE_BYTES_WANTED:
        return note(what, "Artifacts and screenshots will fill it soon.")
    return ok(what)


def check_keys() -> Finding:
    """Check the keys that encrypt secrets and sign sessions."""
    keys: list[str] = settings.CONTINUITY_SECRET_KEYS
    if min(map(len, keys)) < KEY_LENGTH_MIN:
        return bad(
            "one key is too short to be safe",
            f"Set CONTINUITY_SECRET_KEYS to random keys of {KEY_LENGTH_MIN} characters or more.",
        )
    file = settings.CONTINUITY_HOME / "keys"
    if file.exists() and file.stat().st_mode & 0o077:
        return bad(f"{file} can be read by other users", f"Run `chmod 600 {file}`.")
    return ok(f"{len(keys)}, from {_key_source(file)}")


def check_database() -> Finding:
    """Check that the database is reachable and undamaged, and its schema is up to date."""
    kind = "SQLite" if connection.vendor == "sqlite" else "PostgreSQL"
    where = connection.settings_dict["HOST"] or connection.settings_dict["NAME"]
    try:
        missing = unapplied_migrations()
    except Error as error:
        reason = str(error).strip().splitlines()[0]
        damage, _, recovery = (damage_message(error) or "").partition(". ")
        if damage:
            return bad(damage, recovery)
        return bad(f"{kind}: {reason}", "Start it, or correct DATABASE_URL.")
    if (damaged := find_damage()) is not None:
        return bad(describe(damaged).removesuffix("."), RECOVERY)
    if missing:
        what = f"{kind} {where} lacks {len(missing)} migrations"
        return bad(what, "Run `manage.py migrate`.")
    return ok(f"{kind} {where}, schema up to date")


def check_pooling() -> Finding:
    """Compare CONTINUITY_TRANSACTION_POOLING with the pooler in front of the database, if any."""
    is_pooled = pools_transactions()
    if is_pooled and not settings.TRANSACTION_POOLING:
        what, _, recovery = POOLING_NOT_SET.partition(". ")
        return bad(what, recovery)
    if is_pooled:
        return ok("a pooler in transaction mode, as configured")
    if settings.TRANSACTION_POOLING:
        what = "CONTINUITY_TRANSACTION_POOLING is set, but no pooler in transaction mode was found"
        recovery = "If there is none, unset it: prepared statements make runs faster."
        return note(what, recovery)
    return ok("each connection is a session of the database")


def check_rolling_upgrade() -> Finding:
    """Report CONTINUITY_ROLLING_UPGRADE, which has to be unset when the upgrade is finished."""
    if not settings.ROLLING_UPGRADE:
        return ok("no older processes are expected")
    what = "CONTINUITY_ROLLING_UPGRADE is set: secrets are encrypted as the previous version does"
    recovery = "When its last process is replaced, finish the upgrade (docs/operations.md)."
    return note(what, recovery)


def check_totals() -> Finding:
    """Compare the stored totals of runs with the rows."""
    wrong, missing = count_inconsistent_totals(), len(missing_triggers())
    if wrong or missing:
        what = f"{wrong} totals of runs are wrong, {missing} triggers are missing"
        return bad(what, "Run `manage.py recount_runs`.")
    return ok("the totals of runs match the rows")


def check_tokens() -> Finding:
    """Report the bearer tokens that expire soon."""
    expiring = list_expiring_tokens()
    if not expiring:
        return ok(f"none expires within {EXPIRY_WARNING.days} days")
    named = ", ".join(f"{token.name} ({ago(token.expires_at)})" for token in expiring[:5])
    more = f" and {len(expiring) - 5} more" if len(expiring) > 5 else ""
    recovery = "Create new ones with `manage.py create_token`, and send those instead."
    return note(f"expire soon: {named}{more}", recovery)


def check_confirmers() -> Finding:
    """Report the tokens that confirm nothing although they have the scope `confirm`."""
    idle = list_tokens_that_cannot_confirm()
    if not idle:
        return ok("every token with the scope confirm can confirm")
    named = ", ".join(token.name for token in idle[:5])
    more = f" and {len(idle) - 5} more" if len(idle) > 5 else ""
    what = f"these tokens confirm no calls, because they can write or act for users: {named}{more}"
    recovery = "Create one for it: `manage.py create_token --scopes continuity:write,confirm`."
    return note(what, recovery)


def check_browsers() -> Finding:
    """Report how many paired browsers are paired and connected; nothing needs one."""
    paired = PluginClient.objects.filter(revoked_at__isnull=True).count()
    online = connected_browsers().count()
    if not paired:
        what = "none is paired; `manage.py plugin_ticket` pairs your own one (docs/extension.md)"
        return ok(what)
    return ok(f"{paired} paired, {online} connected now")


def check_audit() -> Finding:
    """Check the triggers of the audit tables and that the scheduler seals rows; `manage.py
    verify_audit` checks the whole log.
    """
    try:
        fault = describe_audit_fault()
        newest = newest_checkpoint()
        is_cut = newest is not None and not is_in_chain(newest, newest_cut())
    except (Error, OSError):
        return note("not checked: see the database")
    if is_cut:
        what = "the newest checkpoint is not in the audit log: rows were lost or removed"
        recovery = f"See `manage.py verify_audit`. If the database was damaged: {RECOVERY}"
        return bad(what, recovery)
    if fault:
        what, _, recovery = fault.partition(". ")
        return bad(what, recovery)
    return ok("no row has been without a seal for over a minute")


def check_processes() -> Finding:
    """Report the processes that hang or were lost, by their heartbeats, and whether the web process
    of this home answers.
    """
    found = list_processes()
    hung = [
        f"{one.kind} {one.pid} on {one.host} is {one.words}"
        for one in found
        if one.state == ProcessState.HUNG
    ]
    info = live_info()
    if info is not None and (fault := describe_web_fault(info.url)):
        hung.insert(0, f"web at {info.url}: {fault}")
    if hung:
        recovery = "Continue it (`kill -CONT PID`), or end it (`kill -KILL PID`) and start another."
        return bad("; ".join(hung[:5]), recovery)
    lost = sum(one.state == ProcessState.LOST for one in found)
    counts = Counter(one.kind for one in found if one.state == ProcessState.RUNNING)
    what = ", ".join(f"{counts[kind]} {kind}" for kind in sorted(counts)) or "none runs"
    if lost:
        return note(f"{what}; {lost} lost within the last hour")
    return ok(what)


def check_redis() -> Finding:
    """Check the private Redis server or the one of REDIS_URL."""
    if settings.REDIS_SOCKET is None:
        return _check_shared_redis()
    path = Path(settings.REDIS_SOCKET)
    if redis_server.is_responding(path):
        if fault := describe_redis_fault():
            return bad(f"{path}: {fault}", _WITHOUT_REDIS)
        return ok(f"responds on {path}")
    binary = redis_server.find_binary()
    if binary is None:
        return bad(
            "no redis-server or valkey-server was found",
            "Install one (Debian: `apt-get install redis-server`), or set REDIS_URL.",
        )
    return ok(f"not running; `manage.py up` starts {binary}")


def check_artifacts() -> Finding:
    """Write a file to the artifact storage and read it back."""
    storage, probe = storages["artifacts"], uuid.uuid4().hex.encode()
    name = f"doctor/{probe.decode()}"
    kind = type(storage).__name__
    try:
        stored_name = storage.save(name, ContentFile(probe))
        with storage.open(stored_name) as file:
            is_same = file.read() == probe
        storage.delete(stored_name)
    except (OSError, SuspiciousFileOperation) as error:
        what = f"{kind}: {type(error).__name__}: {str(error)[:200]}"
        return bad(what, "Correct CONTINUITY_ARTIFACT_STORAGE.")
    if not is_same:
        return bad(f"{kind} returned other bytes", "Check the storage.")
    if not settings.EMBEDDED and isinstance(storage, FileSystemStorage):
        what = f"{storage.location}, written and read back: is it the same on every machine?"
        recovery = "If not, set CONTINUITY_ARTIFACT_STORAGE to a bucket or a shared folder."
        return note(what, recovery)
    return ok(f"{kind}, written and read back")


def check_port() -> Finding:
    """Check whether the default port of the web service is free."""
    try:
        listen(FIRST_PORT).close()
    except PortTaken:
        info = live_info()
        if info is not None and info.url.endswith(f":{FIRST_PORT}"):
            return ok(f"{FIRST_PORT}, used by this stack")
        what = f"{FIRST_PORT} is in use by another program"
        if info is not None:
            return ok(f"{what}; this stack uses {info.url}")
        return note(what, "`manage.py up` uses the next free one and prints it.")
    return ok(f"{FIRST_PORT} is free")


def check_stack() -> Finding:
    """Report whether the stack is up and its services run."""
    info = live_info(home_paths())
    if info is None and is_up():
        return ok("starting or stopping; see `manage.py status`")
    if info is None:
        return ok("not up; `manage.py up` starts it")
    away = [service.name for service in info.services if service.state != "running"]
    if away:
        what = f"{info.url}; not running: {', '.join(away)}"
        return bad(what, f"See {home_paths().log(away[0])}.")
    return ok(f"{info.url} ({info.mode}, process {info.pid})")


def check_core_dumps() -> Finding:
    """Report where a process of the stack that crashes would write its memory; `manage.py` forbids
    it for all processes that it starts.
    """
    info = live_info(home_paths())
    pids = [os.getpid()] if info is None else [info.pid, *(one.pid for one in info.services)]
    allowed = [pid for pid in pids if pid is not None and _core_limit(pid) > 1]
    if allowed:
        pattern = _core_pattern()
        what = f"processes {', '.join(map(str, allowed))} write their memory to {pattern!r}"
        recovery = "Their memory has secrets. Restart the stack; start services by manage.py only."
        return bad(what, recovery)
    return ok("off for all processes of Continuity")


def check_public_url() -> Finding:
    """Check that people reach this server over TLS, and that its proxy is known."""
    if not settings.PUBLIC_URL:
        return ok("no public URL is set: for this machine only")
    if settings.IS_PUBLIC_OVER_TLS and settings.TRUSTED_PROXIES:
        return ok(f"{settings.PUBLIC_URL}, with a trusted proxy")
    if settings.IS_PUBLIC_OVER_TLS:
        what = f"{settings.PUBLIC_URL}: clients have the address and scheme of an unknown proxy"
        recovery = "Set CONTINUITY_TRUSTED_PROXIES to the addresses of the proxy."
        return note(what, recovery)
    if is_loopback(settings.PUBLIC_URL_PARTS.hostname or ""):
        return ok(f"{settings.PUBLIC_URL}, on this machine")
    what = f"{settings.PUBLIC_URL}: passwords and tokens are sent unencrypted"
    recovery = "Put a proxy with TLS in front (docs/operations.md), and use its https URL."
    return bad(what, recovery)


def check_email() -> Finding:
    """Return whether the mail server accepts a connection and the account, if one is configured."""
    to = settings.WAITING_EMAIL_TO
    if not to:
        return ok("none is sent about what waits for a person")
    name = f"to {', '.join(to)}"
    try:
        server = get_mail_connection()
        server.open()
        server.close()
    except (SMTPException, OSError) as error:
        recovery = "Check CONTINUITY_EMAIL_URL: host, port, encryption, user and password."
        return bad(f"{name}: {type(error).__name__}: {error}", recovery)
    return ok(name)


def check_egress() -> Finding:
    """Report which addresses remote callers can reach."""
    opened = settings.CONTINUITY_EGRESS_ALLOW
    if not opened:
        return ok("remote callers reach public addresses only")
    what = f"remote callers also reach {', '.join(map(str, opened))}"
    if any(network.includes_loopback for network in opened):
        recovery = "That includes this machine; name single ports in CONTINUITY_EGRESS_ALLOW."
        return note(what, recovery)
    return ok(what)


def check_llm() -> Finding:
    """Request a word from the model that agents use; nothing else needs a model."""
    info = live_info(home_paths())
    if info is not None and info.model not in (None, settings.LLM.label):
        return _other_model(info.model or "")
    if not settings.LLM.model:
        recovery = "For agents, set CONTINUITY_LLM_MODEL and what it needs (docs/agents.md)."
        return note("no model is set; only agents need one", recovery)
    # Imported here: the model's library takes a second to load, which other commands do not need.
    from runners.llm.probe import probe_model

    try:
        what = asyncio.run(probe_model(settings.LLM))
    except ToolFailed as failed:
        recovery = "Correct CONTINUITY_LLM_…, or start the model's server; only agents need it."
        return bad(failed.message, recovery)
    return _check_vision(what)


def _check_vision(what: str) -> Finding:
    """Show the model a picture, if it gets pictures of pages; `what` is found already."""
    if not settings.LLM.can_see:
        return ok(f"{what}; it gets no pictures")
    from runners.llm.probe import probe_vision

    recovery = "Set CONTINUITY_LLM_VISION=off, or CONTINUITY_LLM_MODEL to a model that sees."
    try:
        seen = asyncio.run(probe_vision(settings.LLM))
    except ToolFailed as failed:
        return bad(f"{what}, but not to a picture: {failed.message}", recovery)
    what = f"{what}; shown a red picture, it says {seen!r}"
    if "red" not in seen.casefold():
        return bad(what, recovery)
    return ok(what)


def check_fonts() -> Finding:
    """Check for the fonts that screenshots of Chinese, Japanese and Korean text need."""
    if sys.platform != "linux":
        return ok("the fonts of the system")
    fc_list = shutil.which("fc-list")
    if fc_list is None:
        what = "fc-list is missing, so it is unknown which characters screenshots show"
        return note(what, f"Run `{_FONT_PACKAGES}` (Debian).")
    fonts = subprocess.run([fc_list, "-q", ":lang=zh"], env=browser_environment(), check=False)
    if fonts.returncode != 0:
        what = "none for Chinese, Japanese or Korean: screenshots show boxes in their place"
        return note(what, f"Run `{_FONT_PACKAGES}` (Debian).")
    return ok("Chinese characters are shown on screenshots")


def _other_model(of_stack: str) -> Finding:
    """Report that the running stack was started with another model than the one set here."""
    if not settings.LLM.model:
        what = f"the running stack has {of_stack}; none is set here, so it was not checked"
        return note(what, "Set CONTINUITY_LLM_… here as well to check it.")
    what = f"{settings.LLM.label} is set here, but the running stack has {of_stack or 'none'}"
    recovery = (
        "The stack keeps the model it was started with: stop it and start it again from here."
    )
    return note(what, recovery)


def _is_as_pinned(pin: Requirement) -> bool:
    try:
        version = importlib.metadata.version(pin.name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return pin.specifier.contains(version, prereleases=True)


def _core_limit(pid: int) -> int:
    """Return the number of bytes that a process may write when it crashes; 0 if it has ended."""
    if not hasattr(resource, "prlimit"):  # not Linux: only this process can be examined
        soft = resource.getrlimit(resource.RLIMIT_CORE)[0]
    else:
        try:
            soft = resource.prlimit(pid, resource.RLIMIT_CORE)[0]
        except (ProcessLookupError, PermissionError):
            return 0
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def _core_pattern() -> str:
    try:
        return Path("/proc/sys/kernel/core_pattern").read_text().strip()
    except OSError:
        return "core"


def _key_source(file: Path) -> str:
    return "CONTINUITY_SECRET_KEYS" if os.environ.get("CONTINUITY_SECRET_KEYS") else str(file)


def _check_shared_redis() -> Finding:
    address = re.sub(r"//[^@/]*@", "//…@", settings.REDIS_URL)
    if fault := describe_redis_fault():
        return bad(f"{address}: {fault}", _WITHOUT_REDIS)
    return ok(f"takes writes on {address}")


_CHECKS: tuple[tuple[str, Callable[[], Finding]], ...] = (
    ("python", check_python),
    ("packages", check_packages),
    ("home", check_home),
    ("keys", check_keys),
    ("database", check_database),
    ("pooling", check_pooling),
    ("upgrade", check_rolling_upgrade),
    ("totals", check_totals),
    ("tokens", check_tokens),
    ("confirmers", check_confirmers),
    ("browsers", check_browsers),
    ("audit", check_audit),
    ("redis", check_redis),
    ("processes", check_processes),
    ("artifacts", check_artifacts),
    ("port", check_port),
    ("stack", check_stack),
    ("core dumps", check_core_dumps),
    ("network", check_public_url),
    ("e-mail", check_email),
    ("egress", check_egress),
    ("llm", check_llm),
    ("fonts", check_fonts),
)


def run_checks() -> Iterator[tuple[str, Finding]]:
    """Yield (name, finding) of every check but the browser's, each as soon as it is known."""
    for name, check in _CHECKS:
        if name == "pooling" and settings.EMBEDDED:
            continue
        # A fleet's parts have ports and supervisors of their own.
        if name in ("port", "stack") and not (settings.EMBEDDED or is_up()):
            continue
        try:
            found = check()
        except Error:
            found = note("not checked: see the database")
        yield name, found
