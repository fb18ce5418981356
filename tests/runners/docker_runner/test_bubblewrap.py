"""What a command under bubblewrap cannot do: real attempts to escape."""

from __future__ import annotations

import errno
import os
import platform
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from runners.docker_runner.isolation.base import MIB, Limits, RunnerFolder
from runners.docker_runner.isolation.bubblewrap import BubblewrapIsolation
from tests.support.runners.docker_runner_process import (
    PROJECT,
    link_sleep,
    processes_named,
    run_line,
    runner_command,
)
from tests.support.runs.waiting import wait_until

SMALL_LIMITS = Limits(
    memory_bytes=512 * MIB, processes=48, file_bytes=4 * MIB, scratch_bytes=8 * MIB
)


def isolation_at(
    root: Path, *, allow_net: bool = False, closed: Path | None = None
) -> BubblewrapIsolation:
    runner_folder = RunnerFolder(
        root, allow_net=allow_net, closed=(closed,) if closed else (), limits=SMALL_LIMITS
    )
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is absent")
    return BubblewrapIsolation(runner_folder)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The runner's folder, with a file outside of it that no command may reach."""
    folder = tmp_path / "root"
    folder.mkdir()
    (tmp_path / "secret").write_text("the secret")
    return folder


@pytest.fixture
def bubblewrap(root: Path) -> BubblewrapIsolation:
    """Commands in that folder, without a network."""
    return isolation_at(root)


def test_a_command_runs_in_its_folder_and_may_change_it(
    bubblewrap: BubblewrapIsolation, root: Path
) -> None:
    (root / "below").mkdir()
    result = run_line(bubblewrap, "pwd; echo $A > made; exit 7", folder="below", env={"A": "1"})
    assert (result.status, result.stdout) == (7, "/workspace/below\n")
    assert (root / "below" / "made").read_text() == "1\n"


@pytest.mark.parametrize("path", ["/x", "/usr/x", "/etc/x", "/dev/x", "/usr/bin/sh", "/proc/sys/x"])
def test_nothing_outside_of_the_folder_can_be_written(
    bubblewrap: BubblewrapIsolation, path: str
) -> None:
    before = Path(path).stat() if Path(path).exists() else None
    result = run_line(bubblewrap, f"echo broken >> {path}")
    assert result.status != 0
    assert (Path(path).stat() if Path(path).exists() else None) == before


def test_nothing_outside_the_folder_can_be_read_by_path_or_through_a_link(
    bubblewrap: BubblewrapIsolation, root: Path
) -> None:
    secret = root.parent / "secret"
    (root / "planted").symlink_to(secret)
    result = run_line(
        bubblewrap,
        f"cat {secret}; cat ../secret; cat planted; ln -s {secret} mine; cat mine;"
        f" cat /proc/1/root{secret}; cat /proc/self/root{secret}; cat /proc/1/cwd/../secret",
    )
    assert result.stdout == ""
    assert result.status != 0


def test_a_closed_folder_is_empty_also_below_usr(root: Path) -> None:
    closed = next(
        folder
        for folder in Path("/usr/share").iterdir()
        if folder.is_dir() and any(folder.iterdir())
    )
    result = run_line(
        isolation_at(root, closed=closed.resolve()), f"ls -A {closed}; touch {closed}/x"
    )
    assert result.stdout == ""
    assert result.status != 0


def test_the_runners_environment_and_home_folders_are_not_visible(
    bubblewrap: BubblewrapIsolation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOP_SECRET", "the secret")
    result = run_line(bubblewrap, "env; cat /proc/[0-9]*/environ; ls -d /root /home /var /srv")
    assert "secret" not in result.stdout.lower()
    assert not any(home in result.stdout.split() for home in ("/root", "/home", "/var", "/srv"))


def test_no_other_process_is_visible_or_reachable(bubblewrap: BubblewrapIsolation) -> None:
    with subprocess.Popen(["sleep", "600"]) as other:
        result = run_line(bubblewrap, f"kill -9 {other.pid} {os.getpid()}; kill -9 -1; ls /proc")
        assert other.poll() is None
        other.kill()
    assert str(os.getpid()) not in result.stdout.split()


def test_a_command_has_no_capabilities_and_creates_no_namespaces(
    bubblewrap: BubblewrapIsolation,
) -> None:
    result = run_line(
        bubblewrap, "grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status; unshare -U true"
    )
    assert result.stdout.split() == ["CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]
    assert result.status != 0


def test_kernel_settings_are_readable_but_not_writable(bubblewrap: BubblewrapIsolation) -> None:
    setting = "/proc/sys/kernel/core_pattern"  # the kernel runs it outside, as root
    result = run_line(bubblewrap, f'v=$(cat {setting}) && echo read && echo "$v" > {setting}')
    assert (result.status, result.stdout) == (1, "read\n")
    assert "Read-only file system" in result.stderr or os.getuid() != 0


def python_output(isolation: BubblewrapIsolation, lines: str) -> str:
    """Run Python in the sandbox and return its output."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None:
        pytest.skip("the machine has no Python below /usr")
    result = run_line(isolation, f"{python} - <<'END'\n{lines}\nEND")
    assert result.status == 0, result.stderr
    return result.stdout.strip()


def test_a_command_gets_only_sockets_of_its_own_network(root: Path) -> None:
    for allow_net in (False, True):
        output = python_output(isolation_at(root, allow_net=allow_net), _SOCKETS)
        assert output == "1 2 10 16"


_SOCKETS = """
import socket
found = []
for family in range(1, 46):
    try:
        socket.socket(family, socket.SOCK_RAW if family == 16 else socket.SOCK_STREAM).close()
    except OSError:
        continue
    found.append(family)
print(*found)
"""


def test_keyrings_and_io_uring_are_unavailable(bubblewrap: BubblewrapIsolation) -> None:
    codes = "(425, 250)" if platform.machine() == "x86_64" else "(425, 219)"
    output = python_output(bubblewrap, _ABSENT.replace("CODES", codes))
    assert output == f"{errno.ENOSYS} {errno.ENOSYS}"


_ABSENT = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def tried(code):
    assert libc.syscall(code, 0, -3, 0, 0, 0) == -1
    return ctypes.get_errno()
print(*map(tried, CODES))
"""


@pytest.mark.parametrize(
    "command",
    [
        "cp /bin/true it && chmod 4755 it",
        "cp /bin/true it && chmod g+s it",
        "install -m 6755 /bin/true it",
    ],
)
def test_no_program_with_the_runners_rights_is_left_behind(
    bubblewrap: BubblewrapIsolation, root: Path, command: str
) -> None:
    assert run_line(bubblewrap, command).status != 0
    assert not any(path.stat().st_mode & 0o6000 for path in root.iterdir())
    assert run_line(bubblewrap, "cp /bin/true well && chmod 755 well && ./well").status == 0


def test_no_set_id_file_can_be_created(bubblewrap: BubblewrapIsolation, root: Path) -> None:
    output = python_output(bubblewrap, _SET_ID)
    assert output == "PermissionError PermissionError"
    assert list(root.iterdir()) == []


_SET_ID = """
import os, stat
def tried(make, *args):
    try:
        make(*args)
    except OSError as error:
        return type(error).__name__
print(tried(os.open, "a", os.O_CREAT | os.O_WRONLY, 0o4755), tried(os.mknod, "b", 0o104755))
"""


def reachable(isolation: BubblewrapIsolation) -> tuple[bool, bool]:
    """Return whether a command reaches a port, and an abstract socket, of this machine."""
    name = f"runner-test-{os.urandom(6).hex()}"
    with socket.create_server(("127.0.0.1", 0)) as port, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        port_number = port.getsockname()[1]
        python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
        line = f"import socket; socket.socket(socket.AF_UNIX).connect(chr(0) + '{name}')"
        result = run_line(
            isolation,
            f"bash -c 'echo >/dev/tcp/127.0.0.1/{port_number}' && echo port;"
            f' {python or "false"} -c "{line}" && echo abstract',
        )
    return "port" in result.stdout, "abstract" in result.stdout


def test_there_is_no_network_unless_it_is_allowed(
    bubblewrap: BubblewrapIsolation, root: Path
) -> None:
    assert reachable(bubblewrap) == (False, False)
    assert reachable(isolation_at(root, allow_net=True))[0]


def test_a_fork_bomb_is_limited_and_ends_with_the_runner(
    bubblewrap: BubblewrapIsolation, root: Path
) -> None:
    sleep_program = link_sleep(root)
    sleep = f"./{sleep_program} 600"
    bomb = f"for i in $(seq 200); do {sleep} & done; :(){{ :|:& }}; :; {sleep}"
    command = [sys.executable, "-c", _RUN_BOMB, str(root), bomb]
    with subprocess.Popen(command, cwd=PROJECT) as runner:
        wait_until(lambda: len(processes_named(sleep_program)) >= 20 or runner.poll() is not None)
        most_at_once = max(len(processes_named(sleep_program)) for _ in range(5))
        runner.kill()
    assert 0 < most_at_once <= SMALL_LIMITS.processes
    wait_until(lambda: not processes_named(sleep_program))
    assert run_line(bubblewrap, "echo well").stdout == "well\n"


_RUN_BOMB = f"""
import sys
from pathlib import Path
from tests.support.runners.docker_runner_process import run_line
from {__name__} import isolation_at
run_line(isolation_at(Path(sys.argv[1])), sys.argv[2])
"""


@pytest.mark.parametrize(
    "command",
    [
        "head -c 2G /dev/zero | tail -c 2G > /dev/null",
        "head -c 6M /dev/zero > large",
        "head -c 12M /dev/zero > /tmp/large",
        "head -c 12M /dev/zero > /dev/shm/large",
    ],
)
def test_memory_files_and_scratch_space_are_limited(
    bubblewrap: BubblewrapIsolation, command: str
) -> None:
    assert run_line(bubblewrap, f"set -o pipefail; {command}").status != 0


@pytest.mark.slow
def test_a_process_that_leaves_its_group_and_environment_is_killed_at_the_deadline(
    bubblewrap: BubblewrapIsolation, root: Path
) -> None:
    sleep_program = link_sleep(root)
    result = run_line(
        bubblewrap, f"(setsid env -i ./{sleep_program} 600 &); ./{sleep_program} 600", timeout_s=3
    )
    assert result.status is None
    assert processes_named(sleep_program) == []


def test_no_control_group_remains(bubblewrap: BubblewrapIsolation) -> None:
    run_line(bubblewrap, "true")
    pattern = f"continuity-runner-{os.getpid()}-*"
    assert list(Path("/sys/fs/cgroup").glob(f"**/{pattern}")) == []


def test_where_bubblewrap_cannot_run_the_runner_reports_it_and_does_not_start(root: Path) -> None:
    isolation_at(root)
    outer = ["bwrap", "--dev-bind", "/", "/", "--unshare-user", "--disable-userns", "--"]
    completed = subprocess.run(
        [*outer, *runner_command(root)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert completed.returncode == 1
    assert "bubblewrap cannot isolate commands here" in completed.stderr
    assert completed.stdout == ""
