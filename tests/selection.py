"""Select the tests that also run on SQLite, and those of `make quick`; order them (docs/tests.md).

Tests run on PostgreSQL, which production uses. `--what-sqlite-decides` keeps those whose result the
code for SQLite can change: the tests of each module that asks for the database's vendor, the
constraints and invariants, and invalid inputs that are stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

import pytest

ON_SQLITE = "--what-sqlite-decides"
QUICK = "--quick"
ROOT = Path(__file__).parent.parent
# The product's files that ask for the vendor of the database, or hold SQL for SQLite, with the
# tests of what they do. tests/tooling/test_selection.py finds a file that is missing here.
VENDOR = {
    "artifacts/storage/blob_lock.py": (
        "artifacts/storage/test_artifacts.py",
        "artifacts/storage/test_s3.py",
        "artifacts/api/test_uploads.py",
    ),
    "config/settings.py": ("config/test_health.py",),
    "decisions/admin/audit.py": ("decisions/admin/test_audit_log.py",),
    "decisions/audit/archive.py": ("decisions/audit/test_archive.py",),
    "decisions/audit/query.py": ("decisions/audit/test_query.py",),
    "decisions/audit/sealer.py": ("decisions/audit/test_sealer.py",),
    "decisions/audit/stored.py": (
        "decisions/audit/test_attack_table.py",
        "decisions/audit/test_tamper_detection.py",
    ),
    "decisions/foundation/database/*": ("decisions/foundation/database/*",),
    "decisions/foundation/infra/preconditions.py": ("runs/calls/*",),
    "decisions/foundation/infra/prepared_statements.py": (
        "decisions/foundation/infra/*",
        "runs/queue/*",
    ),
    "runs/operations/home/pooling.py": ("decisions/foundation/database/*",),
    "decisions/migrations/*": ("decisions/audit/test_append_only_rows.py", "decisions/models/*"),
    "decisions/models/audit.py": ("decisions/admin/test_audit_log.py",),
    "decisions/models/audit_triggers.py": ("decisions/audit/test_triggers.py",),
    "runs/admin/run_list/*": (
        "runs/admin/test_bulk_actions.py",
        "runs/admin/test_list_indexes.py",
        "runs/admin/test_run_list.py",
        "runs/admin/test_run_list_filters.py",
    ),
    "runs/operations/backups/*": ("runs/operations/test_backup.py",),
    "runs/operations/health/checks.py": ("config/test_health.py",),
    "runs/operations/home/damage.py": (
        "runs/operations/health/test_damaged_database.py",
        "e2e/test_command_errors.py",
    ),
    "runs/calls/start.py": ("runs/calls/*", "runs/lifecycle/test_in_flight_calls.py"),
    "runs/lifecycle/*": (
        "runs/lifecycle/*",
        "runs/journal/*",
        "runs/sessions/test_sessions.py",
        "runs/webhooks/test_webhooks.py",
    ),
    "runs/migrations/*": ("runs/models/*", "runs/queries/test_totals.py"),
    "runs/queries/run_search.py": ("runs/queries/test_run_search.py",),
    "runs/queries/visibility.py": ("runs/streaming/test_long_poll.py",),
    "runs/search/*": ("runs/queries/test_run_search.py",),
    "runs/queries/totals.py": ("runs/queries/test_totals.py",),
    "runs/queue/*": ("runs/queue/*",),
    "runs/statistics/folding.py": ("runs/statistics/test_statistics.py",),
}
# Invariants that hold on both databases whatever their code, invalid inputs that SQLite would store
# and PostgreSQL refuse, and one way through each surface.
ALSO = (
    "contract/test_bad_inputs.py",
    "contract/test_mcp_runs.py",
    "decisions/authorization/test_confirmations.py",
    "decisions/identity/test_token_expiry.py",
    "decisions/foundation/infra/*",
    "runners/api/*",
    "runners/targets/*",
    "runs/conversations/test_concurrent_messages.py",
    "runs/execution/test_suspension.py",
    "runs/submission/test_idempotency.py",
    "runs/submission/test_submission.py",
    "tooling/test_emptying.py",
)
# The tests of `make quick`: the rules of each part, without browsers, processes and long waits.
FAST = (
    "artifacts/storage/*",
    "contract/test_mcp_tools_list.py",
    "contract/test_rest_routes.py",
    "contract/test_workspace_schemas.py",
    "decisions/rest_base/*",
    "decisions/audit/test_append_only_rows.py",
    "decisions/authorization/test_confirmations.py",
    "decisions/authorization/test_policy.py",
    "decisions/identity/*",
    "decisions/foundation/presentation/*",
    "decisions/foundation/security/*",
    "decisions/foundation/validation/*",
    "mcp_server/protocol/*",
    "runners/actions/*",
    "runners/browser/tools/*",
    "runners/api/*",
    "runners/targets/*",
    "runners/workspace/files/*",
    "runners/workspace/webgal/*",
    "runners/workspace/writing/*",
    "runs/journal/*",
    "runs/lifecycle/*",
    "runs/models/*",
    "runs/queries/*",
    "runs/queue/*",
    "runs/submission/*",
    "test_house_style.py",
    "tooling/*",
)

# Tests that mostly wait for processes. They come first, so that one test worker runs them while the
# others use the processors; at the end, all workers would wait at once.
WAITING = (
    "trials/event_fanout/*",
    "e2e/test_hosts_share_stack.py",
    "e2e/test_killed_stack_parts.py",
    "faults/*",
    "mcp_server/stdio/*",
    "runs/operations/supervision/*",
)


# Tests that take long. They come next: at the end, one test worker would run them alone.
LONG = (
    "config/test_translations.py",
    "contract/test_access_grid.py",
    "runners/workspace/files/test_path_oracle.py",
    "runs/operations/test_backup.py",
    "runs/operations/test_demo_first_run.py",
    "runs/task_templates/*",
    "test_house_style.py",
    "tooling/test_guards.py",
    "trials/volume_trial/*",
)


def runs_on_sqlite(path: Path) -> bool:
    """Return whether the tests of a file also run on SQLite."""
    patterns = [pattern for patterns in VENDOR.values() for pattern in patterns]
    return _matches(path, [*patterns, *ALSO])


def is_quick(path: Path) -> bool:
    """Return whether `make quick` runs the tests of a file."""
    return _matches(path, FAST)


def _matches(path: Path, patterns: Iterable[str]) -> bool:
    name = path.relative_to(ROOT / "tests").as_posix()
    return any(fnmatch(name, pattern) for pattern in patterns)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options."""
    parser.addoption(ON_SQLITE, action="store_true", help="keep what the code for SQLite decides")
    parser.addoption(QUICK, action="store_true", help="keep what takes about a minute")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import the files that are left out."""
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    chosen = (config.getoption(ON_SQLITE), runs_on_sqlite), (config.getoption(QUICK), is_quick)
    return True if any(wanted and not keeps(collection_path) for wanted, keeps in chosen) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests that mostly wait first, then the long ones. A file's tests keep their order."""
    items.sort(
        key=lambda item: (not _matches(item.path, WAITING), not _matches(item.path, LONG)),
    )
