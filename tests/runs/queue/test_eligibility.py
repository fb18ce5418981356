"""A fleet of different workers: of two versions during an upgrade, or each for some templates. A
worker leaves a run that it cannot or may not execute to another worker.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, migrations, models

from runs.models import Run
from runs.queue import dispatch_order, wakeups, work_sharing
from runs.task_templates.registry import get_template
from runs.worker.worker import WorkerProcess
from tests.support.runs.worker_rows import fresh, must_take, register, take

ROOT = Path(__file__).parents[3]
MakeRun = Callable[..., Run]
# The newest migrations before this rule; earlier ones were written before any release.
LAST_EXEMPT = {"artifacts": "0003", "decisions": "0012", "runners": "0003", "runs": "0010"}


@pytest.mark.parametrize(
    ("template_id", "version"),
    [("of_next_year", "1.0.0"), ("test_stepwise", "2.0.0"), ("test_stepwise", "10.0.0")],
)
def test_a_run_that_needs_newer_code_waits_for_a_worker_that_has_it(
    make_run: MakeRun, worker: WorkerProcess, template_id: str, version: str
) -> None:
    run = make_run(template_id=template_id, template_version=version)
    wakeups.send_after_commit(run)
    assert worker.work() == 0
    assert (fresh(run.id).status, fresh(run.id).times_lost) == ("queued", 0)
    assert dispatch_order.next_run("w_newer", of_any=True) == run


@pytest.mark.parametrize("version", ["0.9.0", "1.0.0", "1.7.3"])
def test_a_run_of_an_older_or_the_same_major_version_is_claimed(
    make_run: MakeRun, version: str
) -> None:
    run = make_run(template_version=version)
    assert must_take("w1").run == run


def test_newer_code_claims_runs_that_older_code_left(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(template_version="2.0.0")
    register("w1")
    assert take("w1") is None
    monkeypatch.setattr(type(get_template("test_stepwise")), "version", "2.1.0")
    lease = take("w1")
    assert lease is not None
    assert lease.run == run


def test_a_run_that_must_wait_blocks_no_other(make_run: MakeRun) -> None:
    make_run(template_version="2.0.0")
    claimable = make_run()
    assert must_take("w1").run == claimable


def test_steps_of_a_shared_run_that_needs_newer_code_are_not_claimed(make_run: MakeRun) -> None:
    run = make_run(template_version="2.0.0", status="running", shared=True, lease_owner="w_newer")
    run.steps.create(index=0, name="a", effect="read", effect_key="k")
    assert work_sharing.find_shared_run("w1") is None
    Run.objects.update(template_version="1.0.0")
    assert work_sharing.find_shared_run("w1") is not None


@pytest.mark.parametrize(
    ("named", "taken"),
    [
        ([], {"test_stepwise", "call_tools"}),
        (["call_tools"], {"call_tools"}),
        (["-call_tools"], {"test_stepwise"}),
        (["call_tools", "-call_tools"], set()),
    ],
)
def test_a_worker_claims_only_its_configured_templates(
    make_run: MakeRun, settings: Any, named: list[str], taken: set[str]
) -> None:
    for template_id in ("test_stepwise", "call_tools"):
        make_run(template_id=template_id)
    settings.WORKER_TEMPLATES = named
    register("w1")
    found = [lease.run.template_id for lease in iter(lambda: take("w1"), None)]
    assert sorted(found) == sorted(taken)


def test_a_wakeup_for_other_workers_is_redispatched(
    make_run: MakeRun, worker: WorkerProcess, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    was_sent = threading.Event()

    def record_wakeup(queue: str, run_id: str) -> bool:
        sent.append(run_id)
        was_sent.set()
        return True

    monkeypatch.setattr("runs.queue.redispatch.wakeups.send", record_wakeup)
    settings.WORKER_TEMPLATES = ["-test_stepwise"]
    run = make_run()
    assert worker.work() == 0
    assert was_sent.wait(60)
    assert set(sent) == {run.id}


@pytest.mark.slow
def test_a_worker_with_an_unknown_template_does_not_start() -> None:
    env = os.environ | {"CONTINUITY_WORKER_TEMPLATES": "call_tools,-of_next_year"}
    result = subprocess.run(
        [sys.executable, "manage.py", "worker"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 1
    assert result.stderr.strip().endswith("names unknown templates: -of_next_year.")


def test_migrations_are_compatible_with_older_code() -> None:
    """Code of the previous version writes rows while newer code runs: an added column has a default
    in the database itself, and nothing that older code uses is removed.
    """
    checked = 0
    for app, newest in LAST_EXEMPT.items():
        folder = Path(apps.get_app_config(app).path) / "migrations"
        for path in sorted(folder.glob("0*.py")):
            if path.name[:4] <= newest:
                continue
            checked += 1
            module = importlib.import_module(f"{app}.migrations.{path.stem}")
            operations = module.Migration.operations
            new = {
                operation.name_lower
                for operation in operations
                if isinstance(operation, migrations.CreateModel)
            }
            for operation in operations:
                if getattr(operation, "model_name_lower", None) in new:
                    continue  # a table that older code does not know
                assert not breaks_older_code(operation), f"{path.name}: {operation.describe()}"
    assert checked


def breaks_older_code(operation: Any) -> bool:
    """Return whether statements of the previous version could fail after the operation."""
    if isinstance(operation, migrations.SeparateDatabaseAndState):
        return any(map(breaks_older_code, operation.database_operations))
    if isinstance(operation, migrations.AddField):
        return not (operation.field.null or operation.field.has_db_default())
    return isinstance(
        operation,
        migrations.RemoveField
        | migrations.RenameField
        | migrations.AlterField
        | migrations.AddConstraint
        | migrations.DeleteModel
        | migrations.RenameModel
        | migrations.AlterModelTable,
    )


@pytest.mark.parametrize(
    "operation",
    [
        migrations.AddField("run", "n", models.IntegerField(default=0)),
        migrations.AlterField("run", "n", models.IntegerField(null=True)),
        migrations.SeparateDatabaseAndState([migrations.RemoveField("run", "n")], []),
    ],
)
def test_such_migrations_are_found(operation: Any) -> None:
    assert breaks_older_code(operation)


@pytest.mark.django_db
def test_columns_that_only_older_code_writes_may_be_left_out() -> None:
    """A column that the models no longer have stays until a later version; rows of the present
    version have no value for it.
    """
    unknown = set()
    with connection.cursor() as cursor:
        for model in apps.get_models():
            columns = {field.column for field in model._meta.local_concrete_fields}
            table = model._meta.db_table
            for column in connection.introspection.get_table_description(cursor, table):
                if column.name not in columns:
                    unknown.add((table, column.name))
                    assert column.null_ok or column.default is not None, (table, column.name)
    assert ("runs_webhookdelivery", "settled_at") in unknown
