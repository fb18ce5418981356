"""`python -m tests.trials.soak [--minutes 20] [--database postgresql|sqlite]`: a soak.

Mixed work under bursts of faults of two minutes. In the 90 s after each burst nothing new begins:
every accepted run has to end, a new one has to succeed, and the invariants of the rows are checked.
Prints what was tried and how often, and a table. Exits with 1 if a run was lost or did not end, an
effect happened twice, an invariant is broken, or a caller met an unexpected answer.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.services import free_port
from tests.support.agent.model_server import model_server
from tests.support.browser.login_site import login_site
from tests.support.browser.page_server import serve_pages
from tests.support.runs.webhook_receiver import Receiver, run_receiver
from tests.trials.soak.callers import TARGET, Callers, new_folders
from tests.trials.soak.stack import Stack
from tests.trials.upgrade_trial.__main__ import RULE
from tests.trials.upgrade_trial.load import answer_turn

BURST_S, QUIET_S = 120.0, 90.0
DRAIN_S = 300.0  # the longest time that rounds of a burst may take to end
TRIAL_TEMPLATE = Path(__file__).parents[1] / "upgrade_trial" / "trial_template.py"


def main() -> int:
    """Run the soak and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--database", choices=("postgresql", "sqlite"), default="postgresql")
    parser.add_argument("--faults", default="", help="only these, separated by commas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="leave the logs")
    options = parser.parse_args()
    random.seed(options.seed)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends what was started
    home = Path(tempfile.mkdtemp(prefix="cty-soak-"))
    new_folders(home)
    shutil.copy(TRIAL_TEMPLATE, home / "template")
    with contextlib.ExitStack() as stack:
        model = stack.enter_context(model_server())
        model.answer = answer_turn
        receiver = stack.enter_context(run_receiver())
        site = stack.enter_context(login_site(home))
        pages = stack.enter_context(serve_pages())
        servers = Stack(home, stack, on_sqlite=options.database == "sqlite")
        env = environment(home, servers, model.url)
        servers.set_environment(env)
        servers.command("migrate", "--verbosity", "0")
        token = servers.command("create_token", "--trust", "local", "caller")
        scopes = ("--scopes", "continuity:write,confirm")
        confirmer = servers.command("create_token", "--trust", "local", "confirmer", *scopes)
        servers.command("shell", "-c", RULE)
        servers.start(env)
        stack.callback(servers.close)
        runner = next(part for part in servers.parts if part.name == "runner")
        servers.command(
            *("add_target", "--id", TARGET, "--endpoint"),
            *(f"http://127.0.0.1:{runner.port}/execute", "--allow", "bash.exec"),
            *("--reason", "a soak"),
        )
        callers = Callers(servers, token=token, confirmer=confirmer, site=site, pages=pages)
        callers.call("webhooks", {"url": receiver.url, "name": "soak"})
        os.environ.update(env)
        soak = Soak(servers, callers, receiver)
        faults = soak.run(options.minutes * 60, options.faults.split(",") if options.faults else [])
    if options.keep or faults:
        print(f"logs: {home}")
    else:
        shutil.rmtree(home, ignore_errors=True)
    return bool(faults)


def environment(home: Path, servers: Stack, model: str) -> dict[str, str]:
    """Return the environment of all processes."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if "CONTINUITY" not in name and name != "DATABASE_URL"
    }
    databases = {} if servers.databases is None else {"DATABASE_URL": servers.databases.url}
    return {
        **inherited,
        **databases,
        "PYTHONPATH": str(home / "template"),
        "TMPDIR": str(home / "tmp"),
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "REDIS_URL": servers.redis.url,
        "CONTINUITY_REDIS_PREFIX": "soak:",
        "CONTINUITY_HOME": str(home / "home"),
        "CONTINUITY_SECRET_KEYS": secrets.token_hex(32),
        # The second module shifts the wall clock of its process.
        "CONTINUITY_TEMPLATE_MODULES": "trial_template,tests.faults.skewed_clock",
        "CONTINUITY_WORKSPACE": str(home / "files"),
        "CONTINUITY_WRITE_REQUIRES_DIFF": "false",
        "CONTINUITY_MAX_CONCURRENT_RUNS": "8",
        "CONTINUITY_LLM_MODEL": "scripted",
        "CONTINUITY_LLM_BASE_URL": f"{model}/v1",
        "CONTINUITY_LLM_API_KEY": "none",
        "CONTINUITY_METRICS_PORT": str(free_port()),
        "CONTINUITY_LOG_LEVEL": "WARNING",
        "CONTINUITY_CHROMIUM": os.environ.get("CONTINUITY_CHROMIUM", ""),
    }


class Soak:
    """The bursts, what is checked after each, and the table."""

    def __init__(self, stack: Stack, callers: Callers, receiver: Receiver) -> None:
        self.stack, self.callers, self.receiver = stack, callers, receiver
        self.faults: list[str] = []
        self.caused: Counter[str] = Counter()
        self.recoveries_s: list[float] = []
        self.growth: list[dict[str, int]] = []
        import django

        django.setup()

    def run(self, seconds: float, only: list[str]) -> list[str]:
        """Alternate bursts and quiet, report, and return the faults."""
        names = only or self.stack.fault_names
        order = itertools.cycle(random.sample(names, len(names)))
        self.callers.start_all()
        self.callers.begin("warm-up")
        time.sleep(20)
        self._be_quiet()
        ends_at = time.monotonic() + seconds
        number = 0
        while time.monotonic() < ends_at:
            number += 1
            self.callers.begin(f"burst {number}")
            self.callers.go_on()
            self._burst(order)
            self._be_quiet()
        self.callers.stop(within_s=60)
        self.faults += self.callers.faults
        self._check_rows()
        self._check_audit()
        self._report()
        return self.faults

    def _burst(self, order: Any) -> None:
        ends_at = time.monotonic() + BURST_S
        while time.monotonic() < ends_at:
            name = next(order)
            say(f"  {time.strftime('%H:%M:%S')} {name}")
            try:
                self.stack.cause(name)
            except Exception as error:  # noqa: BLE001 - a fault of the trial itself ends nothing
                self.faults.append(f"the fault {name} could not be caused: {error!r}")
                say(self.faults[-1])
            self.caused[name] += 1
            time.sleep(random.uniform(2, 8))

    def _be_quiet(self) -> None:
        """Let what runs end, and check what must be true then."""
        began = time.monotonic()
        self._submit_one()
        self.recoveries_s.append(time.monotonic() - began)
        say(f"  a new run succeeded {self.recoveries_s[-1]:.1f} s after the last fault")
        if not self.callers.pause(DRAIN_S):
            self.faults.append("rounds of callers did not end")
        self._cancel_waiting()
        time.sleep(max(0.0, QUIET_S - (time.monotonic() - began)))
        broken = [one for one in self._broken() if one not in self.faults]
        self.faults += broken
        for one in broken[:20]:
            say(f"  fault {one}")
        self.growth.append(self._sizes())

    def _submit_one(self) -> None:
        file = self.callers.new_file()
        run_id = self.callers.submit("upgrade_trial", {"steps": 1, "file": str(file)})
        self.callers.succeed(run_id)

    def _cancel_waiting(self) -> None:
        """Cancel the runs whose caller gave up between the question and the answer."""
        from django.db import connection

        from runs.models import Run

        connection.close()
        for run_id in Run.objects.filter(waiting_for__isnull=False).values_list("id", flat=True):
            self.callers.call(f"runs/{run_id}/cancel", {})

    def _broken(self) -> list[str]:
        from django.db import connection

        from tests.faults.invariants import broken_invariants

        connection.close()
        deadline = time.monotonic() + 60
        while broken := broken_invariants():
            if time.monotonic() > deadline:
                return broken
            time.sleep(2)
        return []

    def _sizes(self) -> dict[str, int]:
        import redis
        from django.db import connection

        from artifacts.models import Artifact
        from runs.models import OpenCall, Run, Slot, Worker

        connection.close()
        used = [part.usage() for part in self.stack.parts]
        with redis.Redis.from_url(self.stack.redis.url) as client:
            keys = int(client.dbsize())
        return {
            "runs": Run.objects.count(),
            "artifacts": Artifact.objects.count(),
            "open calls": OpenCall.objects.count(),
            "taken slots": Slot.objects.filter(run_id__isnull=False).count(),
            "workers": Worker.objects.filter(lost_at__isnull=True).count(),
            "memory MB": sum(memory for memory, _ in used),
            "handles": sum(handles for _, handles in used),
            "redis keys": keys,
            "temporary files": len(list((self.stack.home / "tmp").iterdir())),
        }

    def _check_rows(self) -> None:
        from runs.models import Run

        statuses = dict(Run.objects.values_list("id", "status"))
        lost = self.callers.accepted - statuses.keys()
        self.faults += [f"lost: {run_id}" for run_id in lost]
        unended = Run.objects.filter(ended_at__isnull=True).values_list("id", "status")
        self.faults += [f"not ended: {row}" for row in unended]
        self.statuses, self.lost, self.unended = Counter(statuses.values()), lost, list(unended)

    def _check_audit(self) -> None:
        try:
            self.stack.command("verify_audit")
        except RuntimeError as error:  # incidents, as while no scheduler could work
            say(f"  {error}")
        try:
            say(f"  {self.stack.command('verify_audit', '--accept-incidents', 'soak')}")
            say(f"  {self.stack.command('verify_audit')}")
        except RuntimeError as error:
            self.faults.append(f"audit log: {error}")

    def _report(self) -> None:
        doubled = sum("doubled" in fault or "I3" in fault for fault in self.faults)
        sent = Counter(one.headers.get("webhook-id", "") for one in self.receiver.requests)
        say("\nfaults caused: " + ", ".join(f"{n} {c}×" for n, c in sorted(self.caused.items())))
        say(f"rounds interrupted: {dict(self.callers.interrupted)}")
        say(f"ends that callers saw: {dict(self.callers.ends)}")
        starts = {part.name: part.starts for part in self.stack.parts}
        say(f"starts of processes: {starts}; webhook messages: {len(sent)}\n")
        say("| submitted | ended | lost | doubled | longest recovery, s | faults found |")
        say("|---|---|---|---|---|---|")
        total = sum(self.statuses.values())
        say(
            f"| {total} ({len(self.callers.accepted)} with an id known to a caller)"
            f" | {total - len(self.unended)}: {dict(self.statuses)} | {len(self.lost)} | {doubled}"
            f" | {max(self.recoveries_s):.1f} | {len(self.faults)} |\n"
        )
        names = list(self.growth[0])
        say("| after burst | " + " | ".join(names) + " |")
        say("|---" * (len(names) + 1) + "|")
        for number, sizes in enumerate(self.growth):
            say(f"| {number} | " + " | ".join(str(sizes[name]) for name in names) + " |")
        for fault in self.faults[:40]:
            say(f"fault: {fault[:700]}")


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
