"""`make agent-bench`: run the forty tasks with a model and print a table.

make agent-bench                              # the model that CONTINUITY_LLM_… configures
make agent-bench ARGS="--model scripted"      # the scripted model; also: done, nothing
make agent-bench ARGS="--model scripted --seed 7 --only 'date picker' --json outcomes.json"
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.services import redis_server
from tests.support.agent.model_server import model_server
from tests.trials.agent_bench.catalogue import all_tasks
from tests.trials.agent_bench.solver.scripted_model import MODELS, ScriptedModel

ROOT = Path(__file__).parents[3]


def main(arguments: Sequence[str]) -> int:
    """Run the tasks; return 1 if one of them failed."""
    options = _parse(arguments)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        redis = stack.enter_context(redis_server())
        os.environ |= _environment(folder, redis.url)
        model = None
        if options.model != "configured":
            server = stack.enter_context(model_server())
            server.answer = model = MODELS[options.model]()
            os.environ |= {
                "CONTINUITY_LLM_PROVIDER": "openai",
                "CONTINUITY_LLM_MODEL": options.model,
                "CONTINUITY_LLM_BASE_URL": f"{server.url}/v1",
                "CONTINUITY_LLM_PRICE": "1/4",
            }
        elif not os.environ.get("CONTINUITY_LLM_MODEL"):
            sys.stderr.write("Set CONTINUITY_LLM_MODEL, or pass --model scripted.\n")
            return 2
        outcomes = list(_attempts(options, folder, model))
    if options.json:
        Path(options.json).write_text(json.dumps(outcomes, indent=1))
    return int(not all(outcome["success"] for outcome in outcomes))


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make agent-bench")
    parser.add_argument("--model", choices=["configured", *MODELS], default="configured")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", metavar="TASK", help="name of a task, or kind")
    parser.add_argument("--json", metavar="FILE", help="also write the outcomes to this file")
    options = parser.parse_args(arguments)
    known = {name for task in all_tasks() for name in (task.name, task.kind)}
    if unknown := set(options.only or ()) - known:
        parser.error(f"no task has this name or kind: {', '.join(sorted(unknown))}")
    return options


def _environment(folder: Path, redis_url: str) -> dict[str, str]:
    """Return the environment of an installation of its own, with one project folder."""
    workspace = folder / "project"
    workspace.mkdir()
    return {
        "CONTINUITY_HOME": str(folder / "home"),
        "CONTINUITY_WORKSPACE": str(workspace),
        "CONTINUITY_SECRET_KEYS": "benchmark-" + "k" * 40,
        "DATABASE_URL": f"sqlite:///{folder}/db.sqlite3?timeout=20&transaction_mode=IMMEDIATE",
        "DJANGO_SETTINGS_MODULE": "tests.lean_settings",
        "REDIS_URL": redis_url,
    }


def _attempts(options: argparse.Namespace, folder: Path, model: Any) -> Iterator[dict[str, Any]]:
    """Set the installation up, try each task, and print its line."""
    migrate = [sys.executable, "manage.py", "migrate", "-v0", "--skip-checks"]
    subprocess.run(migrate, cwd=ROOT, check=True)
    import django  # import late: the environment has to be set first

    django.setup()
    from decisions.identity.principals import local_principal
    from runs.worker.worker import WorkerProcess
    from tests.trials.agent_bench.attempt import attempt
    from tests.trials.agent_bench.tasks.forms import UPLOADED, UPLOADED_TEXT

    (folder / "project" / UPLOADED).write_text(UPLOADED_TEXT)
    principal = local_principal()
    worker = WorkerProcess()
    worker.open()
    wanted = set(options.only or ())
    tasks = [t for t in all_tasks() if not wanted or wanted & {t.name, t.kind}]
    scripted = model if isinstance(model, ScriptedModel) else None
    sys.stdout.write(HEAD)
    outcomes = []
    try:
        for task in tasks:
            outcome = attempt(
                task,
                options.seed,
                principal=principal,
                execute=lambda run_id: worker.work(),
                model=scripted,
            ).as_dict()
            outcomes.append(outcome)
            sys.stdout.write(_line(outcome))
            sys.stdout.flush()
            yield outcome
    finally:
        worker.close()
    sys.stdout.write(_sum(outcomes))


HEAD = (
    f"{'task':<26} {'kind':<12} {'seed':>4} {'ok':<4} {'turns':>5} {'tokens':>7} {'s':>6}"
    "  cost USD\n"
)


def _line(outcome: dict[str, Any]) -> str:
    why = "" if outcome["success"] else f"  {outcome['status']}: {outcome['answer'][:120]}"
    ok, cost = "yes" if outcome["success"] else "no", _cost(outcome["cost_usd"])
    return (
        f"{outcome['task']:<26} {outcome['kind']:<12} {outcome['seed']:>4} {ok:<4}"
        f" {outcome['turns']:>5} {outcome['tokens']:>7} {outcome['seconds']:>6.1f}  {cost}{why}\n"
    )


def _sum(outcomes: list[dict[str, Any]]) -> str:
    reached = sum(outcome["success"] for outcome in outcomes)
    costs = [outcome["cost_usd"] for outcome in outcomes]
    total = {name: sum(one[name] for one in outcomes) for name in ("turns", "tokens", "seconds")}
    cost = _cost(None if None in costs else sum(costs))
    return (
        f"{'sum':<26} {'':<12} {'':>4} {reached}/{len(outcomes)}"
        f" {total['turns']:>5} {total['tokens']:>7} {total['seconds']:>6.1f}  {cost}\n"
    )


def _cost(cost: float | None) -> str:
    return "-" if cost is None else f"{cost:.4f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
