"""A Docker engine for the trial: the one that answers, or one of its own in a temporary folder.

Debian 12 has the engine and debootstrap, but no compose v2 and no buildx: these come from Debian
13, from wherever this machine gets Debian's packages, and are unpacked, not installed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PACKAGES = ("docker.io", "debootstrap")
PLUGIN_PACKAGES = ("docker-compose", "docker-buildx")
PLUGINS_OF_DEBIAN = "trixie"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
START_S, END_S = 120.0, 30.0


class EngineMissing(Exception):
    """There is no engine, and none can be started; the message has the reason."""


@dataclass(slots=True)
class Engine:
    """A running engine; `env` is the environment of programs that use it, `home` the folder of one
    that this program starts.
    """

    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    home: Path | None = None
    process: subprocess.Popen[bytes] | None = None

    def docker(self, *words: str, check: bool = True, stdin: bytes | None = None) -> str:
        """Run a docker command and return its output."""
        done = subprocess.run(
            ["docker", *words], env=self.env, input=stdin, capture_output=True, check=False
        )
        if check and done.returncode:
            text = (done.stderr or done.stdout).decode(errors="replace").strip()
            raise RuntimeError(f"docker {' '.join(words)[:200]}: {text[-2000:]}")
        return done.stdout.decode(errors="replace").strip()

    def answers(self) -> bool:
        """Return whether the engine answers."""
        version = ["docker", "version", "--format", "{{.Server.Version}}"]
        done = subprocess.run(version, env=self.env, capture_output=True, check=False)
        return done.returncode == 0

    def start(self) -> None:
        """Start the engine in its folder, again after it has ended. An engine that gives up is
        started anew, as systemd does: on a busy machine its containerd may be late.

        Raises:
            EngineMissing: It does not start; the message has the last line of its log.
        """
        deadline = time.monotonic() + START_S
        self._start_process()
        while not self.answers():
            if time.monotonic() > deadline:
                last = self._log.read_text(errors="replace").strip().splitlines()[-1:]
                raise EngineMissing(f"dockerd does not start: {' '.join(last)[-400:]}")
            time.sleep(0.2)
            if self.process is None or self.process.poll() is not None:
                time.sleep(1)
                self._start_process()

    def _start_process(self) -> None:
        folders = ["--data-root", f"{self.home}/data", "--exec-root", f"{self.home}/exec"]
        address = ["--pidfile", f"{self.home}/engine.pid", "-H", self.env["DOCKER_HOST"]]
        with self._log.open("ab") as file:
            self.process = subprocess.Popen(
                ["dockerd", *folders, *address], stdout=file, stderr=file, start_new_session=True
            )

    @property
    def _log(self) -> Path:
        assert self.home is not None
        return self.home / "engine.log"

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End the engine's process by a signal; one that does not end on it is killed."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(number)
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def docker_engine(home: Path) -> Iterator[Engine]:
    """Yield the engine that answers, or start one in the folder and stop it afterwards.

    Raises:
        EngineMissing: Neither is possible on this machine.
    """
    if shutil.which("docker") and (present := Engine()).answers():
        require_plugins(present)
        yield present
        return
    if os.geteuid() != 0:
        raise EngineMissing("No Docker engine answers, and only root can start one")
    install_packages()
    unpack_plugins(home / "packages", home / "config/cli-plugins")
    own = {"DOCKER_CONFIG": f"{home}/config", "DOCKER_HOST": f"unix://{home}/engine.sock"}
    engine = Engine({**os.environ, **own}, home)
    try:
        engine.start()
        require_plugins(engine)
        yield engine
    finally:
        if identities := engine.docker("ps", "-aq", check=False).split():
            engine.docker("rm", "-f", "-v", *identities, check=False)
        engine.end()


def require_plugins(engine: Engine) -> None:
    """Raise EngineMissing if docker has no compose v2 or no buildx."""
    for plugin in ("compose", "buildx"):
        if not engine.docker(plugin, "version", check=False):
            raise EngineMissing(f"docker has no {plugin} (Docker's own packages have it)")


def install_packages() -> None:
    """Install the engine and debootstrap with apt, where they are missing."""
    missing = [
        package
        for package, program in zip(PACKAGES, ("dockerd", "debootstrap"), strict=True)
        if not shutil.which(program)
    ]
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise EngineMissing("No Docker engine answers, and without apt-get none can be installed")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120"]
    subprocess.run([*apt, "update"], env=env, capture_output=True, check=False)
    install = [*apt, "install", "-y", "--no-install-recommends", *missing]
    if subprocess.run(install, env=env, capture_output=True, check=False).returncode:
        raise EngineMissing(f"apt-get cannot install {' and '.join(missing)}")


def debian_mirror() -> str:
    """Return from where this machine gets Debian's own packages."""
    fields = ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(COMPONENT)|$(REPO_URI)|$(SUITE)"]
    listed = subprocess.run(fields, capture_output=True, text=True, check=False).stdout
    for line in listed.splitlines():
        origin, component, address, suite = (*line.split("|"), "", "", "")[:4]
        if origin == "Debian" and component == "main" and "security" not in f"{address}{suite}":
            return address
    raise EngineMissing("apt knows no source of Debian's packages")


def unpack_plugins(work: Path, plugins: Path) -> None:
    """Unpack docker's plugins of Debian 13 with an apt configuration of its own."""
    for folder in (work / "lists/partial", work / "cache/archives/partial", work / "root", plugins):
        folder.mkdir(parents=True, exist_ok=True)
    sources = work / "debian.list"
    sources.write_text(f"deb [signed-by={KEYRING}] {debian_mirror()} {PLUGINS_OF_DEBIAN} main\n")
    options = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": work / "lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": work / "cache",
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
    for step in (["update"], ["download", *PLUGIN_PACKAGES]):
        done = subprocess.run([*apt, *step], cwd=work, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EngineMissing(f"apt-get cannot fetch docker's plugins: {done.stderr.strip()}")
    sources.unlink()
    for package in work.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, work / "root"], check=True)
    for program in work.glob("root/usr/libexec/docker/cli-plugins/*"):
        shutil.copy(program, plugins)
