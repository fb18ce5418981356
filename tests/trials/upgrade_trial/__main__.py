"""`python -m tests.trials.upgrade_trial --old COMMIT`: upgrade under load, and go back.

An older version serves; this version migrates; both serve together; this version serves alone;
then without CONTINUITY_ROLLING_UPGRADE; both together again; the older version alone. Exits with 1
if a caller saw an error, a run did not end, an effect did not happen once, a scenario had no round
in a phase, a process ended by itself, or the audit log is not intact.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import psycopg

from tests.services import postgres_server, redis_server
from tests.support.agent.model_server import model_server
from tests.support.browser.login_site import login_site
from tests.support.runs.webhook_receiver import Receiver, run_receiver
from tests.trials.upgrade_trial.fleet import ROOT, Fleet, Version
from tests.trials.upgrade_trial.load import Load, answer_turn

RULE = """
from decisions.authorization.policy_rules import RuleFields, create_rule
create_rule(RuleFields("confirm", tool="write_to_file", reason="trial"), actor="trial")
"""
WAITS = """
SELECT template_id, count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY waited), max(waited)
FROM (
    SELECT template_id, extract(epoch FROM started_at - created_at)::float AS waited FROM runs_run
) AS runs GROUP BY template_id ORDER BY template_id
"""


def main() -> int:
    """Run the trial and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", required=True, help="the commit of the older version")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--keep", action="store_true", help="leave the logs")
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="cty-upgrade-"))
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(checked_out(options.old, home))
        new = Version("new", ROOT, env={"CONTINUITY_ROLLING_UPGRADE": "true"})
        postgres = stack.enter_context(postgres_server())
        redis = stack.enter_context(redis_server())
        model = stack.enter_context(model_server())
        model.answer = answer_turn
        receiver = stack.enter_context(run_receiver())
        site = stack.enter_context(login_site(home))
        fleet = Fleet(home, environment(home, postgres.url, redis.url, model.url))
        stack.callback(fleet.close)
        faults = Trial(fleet, old, new, postgres.url, receiver, site).run(options.minutes * 60)
    if not options.keep:
        shutil.rmtree(home, ignore_errors=True)
    print("\n".join(["", *faults, f"{len(faults)} faults"]))
    return bool(faults)


@contextlib.contextmanager
def checked_out(commit: str, home: Path) -> Iterator[Version]:
    """Yield the older version in a worktree of its own, with the packages that it needs."""
    tree = home / "old"
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
    try:
        yield Version("old", tree, python_for(tree / "requirements.lock", home))
    finally:
        subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def python_for(lock: Path, home: Path) -> str:
    """Return a Python that has these packages: this one, or a new one. Those for some platforms or
    versions of Python alone are not compared.
    """
    pinned = re.findall(r"^([\w.-]+)(?:\[.*\])?==(\S+) \\$", lock.read_text(), re.MULTILINE)
    installed = {one.name.lower().replace("_", "-"): one.version for one in distributions()}
    if all(installed.get(name) == version for name, version in pinned):
        return sys.executable
    venv.create(home / "venv", with_pip=True)
    python = str(home / "venv/bin/python")
    install = [python, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(lock)]
    subprocess.run(install, check=True)
    return python


def environment(home: Path, database: str, redis: str, model: str) -> dict[str, str]:
    """Return the environment of all processes; both versions get the same."""
    folders = {name: home / name for name in ("home", "files", "template")}
    for folder in folders.values():
        folder.mkdir()
    shutil.copy(Path(__file__).parent / "trial_template.py", folders["template"])
    inherited = {name: value for name, value in os.environ.items() if "CONTINUITY" not in name}
    return {
        **inherited,
        "PYTHONPATH": str(folders["template"]),
        "DATABASE_URL": database,
        "REDIS_URL": redis,
        "CONTINUITY_REDIS_PREFIX": "trial:",
        "CONTINUITY_HOME": str(folders["home"]),
        "CONTINUITY_SECRET_KEYS": secrets.token_hex(32),
        "CONTINUITY_TEMPLATE_MODULES": "trial_template",
        "CONTINUITY_WORKSPACE": str(folders["files"]),
        "CONTINUITY_WRITE_REQUIRES_DIFF": "false",
        "CONTINUITY_MAX_CONCURRENT_RUNS": "12",
        "CONTINUITY_LLM_MODEL": "scripted",
        "CONTINUITY_LLM_BASE_URL": f"{model}/v1",
        "CONTINUITY_LLM_API_KEY": "none",
        "CONTINUITY_CHROMIUM": os.environ.get("CONTINUITY_CHROMIUM", ""),
    }


class Trial:
    """The phases, and what is checked after them."""

    def __init__(
        self, fleet: Fleet, old: Version, new: Version, database: str, receiver: Receiver, site: str
    ) -> None:
        self.fleet, self.old, self.new = fleet, old, new
        self.finished = Version("finished", ROOT)  # the new version without the setting
        self.database, self.receiver, self.site = database, receiver, site
        self.faults: list[str] = []

    def run(self, seconds: float) -> list[str]:
        """Go through all phases; return the faults."""
        fleet, old, new = self.fleet, self.old, self.new
        fleet.command(old, "migrate", "--verbosity", "0")
        create = ("create_token", "--trust", "local")
        token = fleet.command(old, *create, "caller")
        scopes = ("--scopes", "continuity:write,confirm")
        confirmer = fleet.command(old, *create, "confirmer", *scopes)
        fleet.start(old, "serve", "scheduler", "worker", "worker")
        load = Load(
            fleet,
            token=token,
            confirmer=confirmer,
            files=fleet.home / "files",
            site=self.site,
            answer_by_command=self._answer_by_command,
        )
        load.call("webhooks", {"url": self.receiver.url, "name": "trial"})
        load.start()
        try:
            self._phases(load, seconds)
        finally:
            load.stop()
        self.faults += load.faults + fleet.ended()
        fleet.start(new, "scheduler")
        self._check_rows(load)
        self._check_audit("at the end", new)
        self._report(load)
        return self.faults

    def _answer_by_command(self, decision: int) -> None:
        """Answer a request that a web process could not confirm, with commands of the new version:
        request it anew, or confirm it if it is one of the new version.
        """
        confirm = "confirm", str(decision)
        try:
            self.fleet.command(self.new, *confirm, "--renew")
        except RuntimeError as error:
            if "has not changed" not in str(error):
                raise
            shown = re.findall(r"--shown (\w+)", self.fleet.command(self.new, *confirm))
            self.fleet.command(self.new, *confirm, "--shown", shown[-1])

    def _phases(self, load: Load, seconds: float) -> None:
        fleet, old, new, finished = self.fleet, self.old, self.new, self.finished
        self._phase(load, "old alone", seconds * 0.08)
        fleet.command(new, "migrate", "--verbosity", "0")
        fleet.command(new, "shell", "-c", RULE)
        load.start_confirmations()
        self._phase(load, "old on the new schema", seconds * 0.1)
        fleet.start(new, "scheduler", "worker")
        fleet.stop(old, "worker")
        fleet.start(new, "serve")
        self._phase(load, "both", seconds * 0.2)
        self._check_audit("with both", new)
        fleet.start(new, "worker")
        fleet.stop(old, "scheduler", "worker", "serve")
        self._phase(load, "new alone", seconds * 0.1)
        self._check_audit("with the new version alone", new)
        self._replace(new, finished)
        fleet.command(finished, "verify_audit", "--accept-incidents", "upgraded")
        fleet.command(finished, "reencrypt")
        self._phase(load, "finished", seconds * 0.15)
        self._check_audit("when finished", finished)
        self._replace(finished, new)
        fleet.command(new, "reencrypt")
        fleet.start(old, "scheduler", "worker", "serve")
        fleet.stop(new, "worker")
        self._phase(load, "both again", seconds * 0.2)
        fleet.start(old, "worker")
        fleet.stop(new, "serve", "worker", "scheduler")
        self._phase(load, "old alone again", seconds * 0.17)

    def _replace(self, before: Version, after: Version) -> None:
        roles = ("scheduler", "worker", "worker", "serve")
        self.fleet.start(after, *roles)
        self.fleet.stop(before, *roles)

    def _phase(self, load: Load, name: str, seconds: float) -> None:
        load.begin(name)
        print(f"{name} for {seconds:.0f} s", flush=True)
        time.sleep(seconds)

    def _check_audit(self, when: str, version: Version) -> None:
        try:
            print(f"  audit {when}:", self.fleet.command(version, "verify_audit"), flush=True)
        except RuntimeError as error:
            self.faults.append(f"audit log {when}: {error}")

    def _check_rows(self, load: Load) -> None:
        with psycopg.connect(self.database) as connection:
            rows: dict[str, str] = dict(
                connection.execute("SELECT id, status FROM runs_run").fetchall()
            )
            lost = {run_id for run_id in load.accepted if run_id not in rows}
            self.faults += [f"{run_id} is lost" for run_id in lost]
            failed = "SELECT id, status, error FROM runs_run WHERE status NOT IN ('succeeded')"
            self.faults += [f"run {row}" for row in connection.execute(failed).fetchall()]
            self._check_deliveries(connection, len(rows))
            print(f"  {len(rows)} runs: {dict(Counter(rows.values()))}")
            for values in connection.execute(WAITS).fetchall():
                print(
                    "  {}: {} runs, waited {:.2f} s for a worker, at most {:.2f} s".format(*values)
                )

    def _check_deliveries(self, connection: psycopg.Connection[Any], runs: int) -> None:
        query = "SELECT status, error, count(*) FROM runs_webhookdelivery GROUP BY 1, 2"
        deadline = time.monotonic() + 120
        found: list[Any] = []
        while time.monotonic() < deadline:
            found = connection.execute(query).fetchall()
            connection.rollback()
            if {status for status, *_ in found} == {"delivered"}:
                break
            time.sleep(1)
        sent = Counter(request.headers["webhook-id"] for request in self.receiver.requests)
        if len(sent) != runs:
            self.faults.append(f"webhook: {len(sent)} of {runs} messages came; rows: {found}")

    def _report(self, load: Load) -> None:
        for (phase, scenario), count in load.rounds.items():
            print(f"  {phase}: {scenario} {count}")
        for (phase, number), count in load.confirmations.items():
            print(f"  {phase}: {count} writes with {number} confirmations each")
        for phase, delays in load.delays.items():
            median, longest = sorted(delays)[len(delays) // 2], max(delays)
            print(
                f"  {phase}: the slowest event of a stream {median:.2f} s, at most {longest:.2f} s"
            )
        logged = Counter(" ".join(line.split())[:300] for line in self.fleet.complaints())
        for line, count in logged.most_common(40):
            print(f"  log {count}x {line}")


if __name__ == "__main__":
    sys.exit(main())
