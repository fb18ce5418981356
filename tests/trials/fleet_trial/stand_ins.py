"""Images of Debian packages under the tags that compose.yaml and the Dockerfiles name.

They stand in for the official images where the engine has none: no registry is reached. What was
tried with them says nothing about the official ones.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path

import yaml

from tests.trials.fleet_trial.engine import Engine, EngineMissing, debian_mirror

ROOT = Path(__file__).parents[3]
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
BASE = "debian:bookworm-slim"
RELEASE = "bookworm"
LABEL = "continuity.stand-in"  # an image that is built from the base inherits it
# What Debian's official slim image does too: packages leave no archives and no manuals behind.
SETTINGS = {
    "etc/apt/apt.conf.d/docker": 'Acquire::Retries "5";'
    'DPkg::Post-Invoke {"rm -f /var/cache/apt/archives/*.deb || true";};',
    "etc/dpkg/dpkg.cfg.d/docker": "path-exclude /usr/share/man/*\npath-exclude /usr/share/doc/*\n",
    "etc/pip.conf": f"[global]\ncert = {CERTIFICATES}\n",
}
INSTALL = "RUN apt-get update -qq && apt-get install -qq -y --no-install-recommends"
CLEAN = "&& rm -rf /var/lib/apt/lists/*"

PYTHON = f"""
{INSTALL} python3 python3-venv {CLEAN} && ln -s python3 /usr/bin/python
CMD ["python3"]
"""
POSTGRES = f"""
{INSTALL} postgresql-15 {CLEAN} && rm -rf /var/lib/postgresql/15
ENV PATH=/usr/lib/postgresql/15/bin:$PATH PGDATA=/var/lib/postgresql/data
RUN mkdir -p $PGDATA /run/postgresql && chown postgres $PGDATA /run/postgresql && chmod 700 $PGDATA
COPY start /usr/local/bin/start
VOLUME /var/lib/postgresql/data
USER postgres
STOPSIGNAL SIGINT
ENTRYPOINT ["start"]
"""
START_POSTGRES = """#!/bin/sh
set -e
if [ ! -e "$PGDATA/PG_VERSION" ]; then
    echo "$POSTGRES_PASSWORD" > /tmp/password
    initdb --username="$POSTGRES_USER" --pwfile=/tmp/password --auth-host=scram-sha-256 >/dev/null
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    pg_ctl -w -o "-c listen_addresses=" start >/dev/null
    createdb -U "$POSTGRES_USER" "$POSTGRES_DB"
    pg_ctl -w -m fast stop >/dev/null
fi
exec postgres -c listen_addresses='*'
"""
REDIS = f"""
{INSTALL} redis-server {CLEAN} \\
    && printf '#!/bin/sh\\nexec /usr/bin/redis-server "$@" --protected-mode no\\n' \\
        > /usr/local/bin/redis-server && chmod +x /usr/local/bin/redis-server
VOLUME /data
USER redis
"""
STORE = f"""
{INSTALL} python3-venv {CLEAN} \\
    && python3 -m venv /opt/venv \\
    && /opt/venv/bin/pip install -q --no-cache-dir moto[s3]=={{moto}} flask flask-cors
EXPOSE 9000
ENV S3_IGNORE_SUBDOMAIN_BUCKETNAME=true
ENTRYPOINT ["sh", "-c", "exec /opt/venv/bin/moto_server -H 0.0.0.0 -p 9000"]
"""


def build_stand_ins(engine: Engine, work: Path) -> list[str]:
    """Build an image for each tag that the engine has not; return the tags that are stand-ins."""
    wanted = image_tags()
    missing = [tag for tag in wanted if not engine.docker("image", "ls", "-q", tag)]
    if missing:
        build_missing(engine, work, wanted, missing)
    label = ["image", "inspect", "-f", f'{{{{index .Config.Labels "{LABEL}"}}}}']
    return [tag for tag in wanted if engine.docker(*label, tag) == "1"]


def build_missing(
    engine: Engine, work: Path, wanted: Mapping[str, str], missing: list[str]
) -> None:
    """Build an image for each of the missing tags, from a base that is imported first."""
    if not shutil.which("debootstrap"):
        raise EngineMissing(f"The engine has no {missing[0]}, and debootstrap is not installed")
    if not engine.docker("image", "ls", "-q", BASE):
        import_base(engine, work)
    for tag, text in wanted.items():
        if tag in missing and text:
            build(engine, tag, f"FROM {BASE}\n{text}", {"start": START_POSTGRES})


def image_tags() -> Mapping[str, str]:
    """Return the tags of compose.yaml and the Dockerfiles, with how a stand-in is built."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    store = STORE.format(moto=version("moto"))
    return {
        BASE: "",
        "python:3.11-slim-bookworm": PYTHON,
        services["postgres"]["image"]: POSTGRES,
        services["redis"]["image"]: REDIS,
        services["s3"]["image"]: store,
    }


def import_base(engine: Engine, work: Path) -> None:
    """Import a minimal Debian that reaches packages as this machine does."""
    tree = work / "base"
    command = ["debootstrap", "--variant=minbase", "--include=ca-certificates"]
    done = subprocess.run(
        [*command, RELEASE, tree, debian_mirror()], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise EngineMissing(f"debootstrap failed: {done.stdout.strip()[-300:]}")
    for name, text in SETTINGS.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    shutil.copy(CERTIFICATES, tree / CERTIFICATES.relative_to("/"))
    for folder in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man"):
        subprocess.run(["find", tree / folder, "-type", "f", "-delete"], check=True)
    packed = work / "base.tar"
    subprocess.run(["tar", "-C", tree, "-cf", packed, "."], check=True)
    change = ["--change", 'CMD ["bash"]', "--change", f"LABEL {LABEL}=1"]
    engine.docker("import", *change, str(packed), BASE)
    packed.unlink()
    subprocess.run(["rm", "-rf", "--one-file-system", tree], check=True)


def build(engine: Engine, tag: str, dockerfile: str, files: Mapping[str, str]) -> None:
    """Build an image of a Dockerfile and small executable files."""
    context = tar_of({"Dockerfile": dockerfile, **files}.items())
    options = ["--load", "--progress", "plain", "-t", tag]
    engine.docker("buildx", "build", *options, "-", stdin=context)


def tar_of(files: Iterable[tuple[str, str]]) -> bytes:
    """Return an archive of executable files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, text in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), 0o755
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()
