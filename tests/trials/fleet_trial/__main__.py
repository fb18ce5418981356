"""`make fleet-trial`: a fleet of compose on a real engine, by the documented commands.

Starts an engine where none answers, and builds stand-ins for the images of other programs where the
engine has none. Prints a table; exits with 1 if something failed, and with 3, after one sentence,
if there can be no engine.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.trials.fleet_trial import runner_kills
from tests.trials.fleet_trial.caller import Caller, Load
from tests.trials.fleet_trial.documented import Shell, block_with, lines_of
from tests.trials.fleet_trial.engine import Engine, EngineMissing, docker_engine
from tests.trials.fleet_trial.stand_ins import ROOT, build_stand_ins

PROJECT = "cty-trial"
SITE, PAGES = "172.30.77.99", 40
READY_S, ENDED_S = 600, 900  # on a busy machine
OUTSIDE = (Path("/etc/continuity"), Path("/var/www/certbot"), Path("/backups"))
WRITE_SITE = f"""
mkdir /tmp/site && cd /tmp/site
for n in $(seq {PAGES}); do echo "<title>Page $n</title><p>Text of page $n</p>" > $n.html; done
exec python3 -m http.server 8000
"""


def main() -> int:
    """Run the trial; print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="of a runner, by each signal")
    parser.add_argument("--ends", type=int, default=5, help="of the engine, by each signal")
    parser.add_argument("--runner", action="store_true", help="only the runner, without a fleet")
    options = parser.parse_args()
    present = [str(path) for path in OUTSIDE if path.exists()]
    if present:
        print(f"The documented commands would change {present[0]}; move it away first.")
        return 3
    home = Path(tempfile.mkdtemp(prefix="cty-fleet-"))
    try:
        with docker_engine(home) as engine:
            stand_ins = build_stand_ins(engine, home)
            trial = Trial(engine, home, options)
            try:
                if not options.runner:
                    trial.run_fleet()
                trial.run_runner()
            finally:
                trial.close()
            return trial.report(stand_ins)
    except EngineMissing as reason:
        print(f"{reason}.")
        return 3
    finally:
        for path in (*OUTSIDE, home):
            shutil.rmtree(path, ignore_errors=True)


class Trial:
    """The steps, and a row of the table for each."""

    def __init__(self, engine: Engine, home: Path, options: argparse.Namespace) -> None:
        self._engine, self._kills, self._ends = engine, options.kills, options.ends
        folder = home / "continuity"
        copy_of_the_tree(folder)
        env = {"COMPOSE_PROJECT_NAME": PROJECT, "CONTINUITY_IMAGE_TAG": "trial"}
        self._shell = Shell(folder, {**engine.env, **env})
        self._caller = Caller()
        self._rows: list[tuple[str, float, str]] = []
        self._failed = False
        self._artifact = ("", b"")

    def run_fleet(self) -> None:
        """Take the steps of the fleet, if it starts."""
        steps = [
            self._accounts,
            self._runner_target,
            self._scale,
            self._batch,
            self._batch_with_a_killed_worker,
            self._restarts,
            self._large_artifact,
            self._certificate,
            self._upgrade,
            self._backup_and_restore,
            self._down,
        ]
        if self._take(self._start):
            for step in steps:
                self._take(step)

    def run_runner(self) -> None:
        """Take the steps of the runner."""
        self._take(self._contract)
        self._take(self._sigterm)
        self._take(self._sigkill)
        self._take(self._frozen_engine)
        self._take(self._stopped_engine)
        self._take(self._killed_engine)

    def report(self, stand_ins: list[str]) -> int:
        """Print the table; return the exit status."""
        print("\n| what | s | result |\n|---|---|---|")
        for name, seconds, result in self._rows:
            print(f"| {name} | {seconds:.0f} | {result} |")
        if stand_ins:
            print(
                f"\nThe official images were not tried: {', '.join(stand_ins)} were stand-ins made"
                " of Debian packages."
            )
        return int(self._failed)

    def close(self) -> None:
        """Remove the fleet and its volumes."""
        self._engine.docker("rm", "-f", f"{PROJECT}-site", check=False)
        self._compose("down -v --remove-orphans", check=False)

    def _take(self, step: Callable[[], str]) -> bool:
        name = (step.__doc__ or "").strip().rstrip(".")
        print(f"{name} …", flush=True)
        began = time.monotonic()
        try:
            result = step()
        except (RuntimeError, OSError, AssertionError, EngineMissing) as error:
            result = f"FAILED: {' '.join(str(error).split())[-900:]}"
        self._rows.append((name, time.monotonic() - began, result))
        print(f"  {result}", flush=True)
        failed = result.startswith("FAILED")
        self._failed |= failed
        return not failed

    # --- the fleet --------------------------------------------------------------------------------

    def _start(self) -> str:
        """Start a fleet: `docker compose up -d --build`, until it is ready through TLS."""
        block = block_with("docker compose up -d --build")
        write, _, up = block.rpartition("docker compose up")
        self._shell.run(write)
        with (self._shell.folder / ".env").open("a") as file:
            file.write(f"CONTINUITY_EGRESS_ALLOW=172.30.77.10:18081,{SITE}:8000\n")
        self._shell.run(f"docker compose up{up}")
        self._until_ready()
        size = int(self._engine.docker("image", "inspect", "-f", "{{.Size}}", "continuity:trial"))
        site = ["--network", f"{PROJECT}_runners", "--ip", SITE, "python:3.11-slim-bookworm"]
        named = ["--name", f"{PROJECT}-site", *site, "sh", "-c", WRITE_SITE]
        self._engine.docker("run", "-d", *named)
        return f"ready; image {size / 1e6:.0f} MB"

    def _accounts(self) -> str:
        """Create the first account (on a terminal) and a token; ask whether all is ready."""
        account, token, check = lines_of(block_with("createsuperuser"))
        password = secrets.token_urlsafe(16)
        self._shell.run_on_terminal(account, [password, password])
        printed = self._shell.run(token).splitlines()
        (self._caller.token,) = [line for line in printed if line and " " not in line]
        assert '"ready":true' in self._shell.run(check)
        return "created"

    def _runner_target(self) -> str:
        """Add the runner as a target, and call bash.exec there."""
        self._shell.run(block_with("add_target"))
        asked = {"args": {"cmd": "id -u; ls -a"}, "targetId": "target_runner"}
        answer = self._caller.api("POST", "tools/bash.exec/call", asked)
        assert answer["output"]["exitCode"] == 0, answer
        return "executed"

    def _scale(self) -> str:
        """Scale web to two containers and worker to four."""
        self._shell.run(block_with("--scale worker="))
        names = self._shell.run("docker compose ps --format '{{.Name}}'").split()
        count = {part: sum(f"-{part}-" in name for name in names) for part in ("web", "worker")}
        assert count == {"web": 2, "worker": 4}, count
        return f"{count}"

    def _batch(self) -> str:
        """Run a batch of pages through TLS."""
        return self._until_ended(self._submit())

    def _batch_with_a_killed_worker(self) -> str:
        """Run a batch while a worker is killed (SIGKILL)."""
        run_id = self._submit()
        time.sleep(1.5)
        worker = self._shell.run("docker compose ps -q worker").split()[0]
        self._engine.docker("kill", "-s", "KILL", worker)
        return self._until_ended(run_id)

    def _restarts(self) -> str:
        """Restart each part during a batch, except the store, whose stand-in keeps nothing."""
        run_id, took = self._submit(), {}
        for part in ("redis", "postgres", "scheduler", "worker", "docker-runner", "web", "proxy"):
            began = time.monotonic()
            self._shell.run(f"docker compose restart {part}")
            self._until_ready()
            took[part] = round(time.monotonic() - began)
        return f"{self._until_ended(run_id)}; seconds until ready again: {took}"

    def _large_artifact(self) -> str:
        """Upload and download 9 MiB by signed links, as another machine."""
        content = os.urandom(9 * 1024 * 1024)
        artifact_id, put = self._caller.upload(content)
        data, link = self._caller.download(artifact_id)
        assert data == content
        assert "X-Amz-Signature" in put
        assert "X-Amz-Signature" in link
        assert self._caller.request("GET", "/continuity/")[0] == 403
        self._artifact = (artifact_id, content)
        return "the same bytes, both through the proxy; without a signature 403"

    def _certificate(self) -> str:
        """Load a renewed certificate."""
        before = self._caller.serial_number()
        lines = lines_of(block_with("openssl req -x509"))
        self._shell.run(next(line for line in lines if line.startswith("openssl")))
        self._shell.run(block_with("nginx -s reload"))
        deadline = time.monotonic() + 10
        while self._caller.serial_number() == before:
            assert time.monotonic() < deadline, "the old certificate is served"
            time.sleep(0.2)
        return "served"

    def _upgrade(self) -> str:
        """Upgrade in place at 20 requests a second."""
        command = block_with("deploy/upgrade")
        (self._shell.folder / "config/__init__.py").write_text('"""A newer version."""\n')
        run_id, load = self._submit(), Load(self._caller)
        try:
            self._shell.run(command)
            time.sleep(5)
        finally:
            found = load.stop()
        errors = {s: n for s, n in found["statuses"].items() if s not in ("200", "429")}
        assert not errors, found
        assert found["longest time without an answer, s"] < 1, found
        return f"{found}; {self._until_ended(run_id)}"

    def _backup_and_restore(self) -> str:
        """Back up, lose all volumes, restore onto empty ones."""
        listed, audit = self._caller.api("GET", "runs?limit=1"), self._audit_faults()
        self._shell.run(block_with("scheduler backup"))
        self._compose("down -v")
        restored = self._shell.run(block_with("scheduler restore"))
        assert "Restored." in restored
        self._until_ready()
        assert self._caller.api("GET", "runs?limit=1")["total"] == listed["total"]
        artifact_id, content = self._artifact
        assert self._caller.download(artifact_id)[0] == content
        assert self._audit_faults() == audit
        return f"{listed['total']} runs, the artifact; faults of the audit log as before: {audit}"

    def _down(self) -> str:
        """Remove the fleet; look for volumes without a name."""
        self._engine.docker("rm", "-f", f"{PROJECT}-site")
        before = set(self._engine.docker("volume", "ls", "-q").split())
        self._compose("down -v")
        left = [one for one in before if one in self._engine.docker("volume", "ls", "-q").split()]
        assert not left, left
        return "none left"

    # --- the runner -------------------------------------------------------------------------------

    def _contract(self) -> str:
        """Run the tests of all isolations on this engine."""
        host = self._engine.env.get("DOCKER_HOST", "unix:///var/run/docker.sock")
        tests = ["-q", "-m", "", "tests/runners/docker_runner/test_isolation_contract.py"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *tests, "-k", "engine"],
            cwd=ROOT,
            env={**self._engine.env, "CONTINUITY_TEST_ENGINE": host},
            capture_output=True,
            text=True,
            check=False,
        )
        last = (done.stdout.strip().splitlines() or ["no output"])[-1]
        return last if done.returncode == 0 else f"FAILED: {last}"

    def _sigterm(self) -> str:
        """SIGTERM of a runner at a random time of a call."""
        return self._killed(signal.SIGTERM, "containers left")

    def _sigkill(self) -> str:
        """SIGKILL of a runner at a random time of a call."""
        return self._killed(signal.SIGKILL, "containers running")

    def _killed(self, number: signal.Signals, must_be_none: str) -> str:
        found = runner_kills.signal_during_a_call(self._engine, number, self._kills)
        assert found[must_be_none] == 0, found
        return f"{found}"

    def _stopped_engine(self) -> str:
        """Stop the engine (SIGTERM) at a random time of a call, and start it again."""
        return self._without_engine(self._ended_by(signal.SIGTERM))

    def _killed_engine(self) -> str:
        """Kill the engine (SIGKILL) at a random time of a call, and start it again."""
        return self._without_engine(self._ended_by(signal.SIGKILL))

    def _frozen_engine(self) -> str:
        """Freeze the engine (SIGSTOP) during a call and before another, until both are answered."""
        return self._without_engine(runner_kills.freeze_engine_during_calls)

    def _ended_by(self, number: signal.Signals) -> Callable[[Engine], dict[str, Any]]:
        return lambda engine: runner_kills.end_engine_during_calls(engine, number, self._ends)

    def _without_engine(self, fault: Callable[[Engine], dict[str, Any]]) -> str:
        if self._engine.process is None:
            return "not tried: the engine is not this program's"
        found = fault(self._engine)
        wrong = {what for what, n in found.items() if what.startswith(("exec", "cont")) and n}
        assert not wrong, found
        assert found["a call afterwards"] == "200 OK", found
        return f"{found}"

    # --- parts of steps ---------------------------------------------------------------------------

    def _compose(self, words: str, *, check: bool = True) -> None:
        try:
            self._shell.run(f"docker compose {words}")
        except RuntimeError:
            if check:
                raise

    def _audit_faults(self) -> list[str]:
        """Return what `verify_audit` finds, also that a busy machine held the sealer up."""
        verify = "docker compose exec -T scheduler python manage.py verify_audit || true"
        lines = self._shell.run(verify).splitlines()
        return [line for line in lines if line.startswith(("row ", "seal ", "checkpoint "))]

    def _submit(self) -> str:
        urls = [f"http://{SITE}:8000/{number}.html" for number in range(1, PAGES + 1)]
        asked = {"templateId": "batch_extract_pages", "inputs": {"urls": urls}}
        created: Any = self._caller.api("POST", "runs", {**asked, "options": {"mode": "async"}})
        return str(created["runId"])

    def _until_ended(self, run_id: str) -> str:
        began = time.monotonic()
        while (status := self._status_of(run_id)) in ("", "queued", "running", "waiting"):
            assert time.monotonic() - began < ENDED_S, f"{run_id} does not end"
            time.sleep(0.5)
        assert status == "succeeded", self._caller.api("GET", f"runs/{run_id}")
        return f"{PAGES} pages in {time.monotonic() - began:.0f} s"

    def _status_of(self, run_id: str) -> str:
        """Return the status of a run, or nothing if the fleet does not answer now."""
        try:
            return str(self._caller.api("GET", f"runs/{run_id}")["status"])
        except (OSError, RuntimeError):
            return ""

    def _until_ready(self) -> None:
        began = time.monotonic()
        while not self._caller.is_ready():
            assert time.monotonic() - began < READY_S, "the fleet is not ready"
            time.sleep(0.5)


def copy_of_the_tree(folder: Path) -> None:
    """Copy the files that git knows or would add: the documented commands write there."""
    listed = ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "-z"]
    names = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


if __name__ == "__main__":
    sys.exit(main())
