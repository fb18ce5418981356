"""Values that the settings derive before Django starts: secret keys, the Redis socket, the artifact
storage, and validated environment variables.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.core.exceptions import ImproperlyConfigured
from environ import Env

SOCKET_PATH_MAX = 100  # bytes; the kernel's limit is 107


def broker_url(redis_url: str) -> str:
    """Return the address of a Redis server as Celery writes it."""
    if not redis_url.startswith("unix://"):
        return redis_url
    return redis_url.replace("unix://", "redis+socket://", 1).replace("?db=", "?virtual_host=", 1)


def load_or_create_keys(continuity_home: Path) -> list[str]:
    """Return the installation's secret keys, newest first; creates one if there is no key file.

    Only the owner can read the file. Safe in processes that start at the same time: the file is
    created atomically.

    Raises:
        ImproperlyConfigured: The home cannot be created, written or read.
    """
    path = continuity_home / "keys"
    try:
        return _load_or_create(path)
    except OSError as error:
        raise ImproperlyConfigured(
            f"CONTINUITY_HOME={continuity_home} cannot be used: {error.strerror}."
            " Set it to a folder that this user can write to."
        ) from None


def _load_or_create(path: Path) -> list[str]:
    continuity_home = path.parent
    if not path.exists():
        continuity_home.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd, draft = tempfile.mkstemp(dir=continuity_home, prefix=".keys-")
        with os.fdopen(fd, "w") as file:
            file.write(secrets.token_urlsafe(48) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # fails if another process was first; its keys are used
        except FileExistsError:
            pass
        finally:
            Path(draft).unlink()
    return path.read_text().split()


def derive_key(key: str, purpose: str) -> str:
    """Return a key for one purpose, so that no two purposes share a key."""
    return hmac.new(key.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def redis_socket(continuity_home: Path) -> Path:
    """Return the socket path of the private Redis server: in the home, or under /tmp if that path
    exceeds the kernel's limit.
    """
    path = continuity_home / "redis" / "redis.sock"
    if len(os.fsencode(path)) <= SOCKET_PATH_MAX:
        return path
    name = hashlib.sha256(os.fsencode(continuity_home)).hexdigest()[:16]
    # Not in TMPDIR, which can differ: every process of this user must find the same socket.
    return Path("/tmp") / f"continuity-{os.getuid()}-{name}" / "redis.sock"  # noqa: S108


def artifact_storage(url: str, continuity_home: Path) -> dict[str, Any]:
    """Return the STORAGES entry for a file path, a file: URL or an s3://bucket/prefix?endpoint=…
    URL; '' is the folder `artifacts` in the home.

    Raises:
        ImproperlyConfigured: An s3: URL has no bucket, or has credentials.
    """
    parts = urlsplit(url)
    if parts.scheme == "s3":
        if parts.username or parts.password or not parts.hostname:
            raise ImproperlyConfigured(
                "CONTINUITY_ARTIFACT_STORAGE must be s3://bucket/prefix?endpoint=… without"
                " credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            )
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        endpoint = query.get("endpoint")
        options: dict[str, Any] = {
            "bucket_name": parts.netloc,
            "location": parts.path.strip("/"),
            "endpoint_url": endpoint,
            # The address of the same server for callers, if they use another.
            "public_endpoint": query.get("public_endpoint"),
            "region_name": query.get("region")
            or os.environ.get("AWS_REGION", os.environ.get("AWS_DEFAULT_REGION", "us-east-1")),
            "signature_version": "s3v4",
            "addressing_style": "path" if endpoint else "auto",
        }
        return {"BACKEND": "artifacts.storage.s3.BlobS3Storage", "OPTIONS": options}
    location = parts.path if parts.scheme == "file" else url
    return {
        "BACKEND": "artifacts.storage.files.BlobFileStorage",
        "OPTIONS": {"location": location or str(continuity_home / "artifacts")},
    }


def choice(env: Env, name: str, *choices: str) -> str:
    """Return an environment variable's value, one of the choices; the first is the default.

    Raises:
        ImproperlyConfigured: The value is not one of the choices.
    """
    value: str = env.str(name, choices[0])
    if value not in choices:
        raise ImproperlyConfigured(f"{name} must be {' or '.join(choices)}, not {value!r}.")
    return value


def integer(env: Env, name: str, default: int, *, minimum: int, maximum: int = 2**31 - 1) -> int:
    """Return an environment variable's value as an integer; the default also if it is empty.

    Raises:
        ImproperlyConfigured: The value is not an integer from `minimum` to `maximum`.
    """
    return _integer(name, env.str(name, "").strip() or str(default), minimum, maximum)


def ports(env: Env, name: str, default: int) -> tuple[int, ...]:
    """Return the ports in an environment variable, separated by commas.

    Raises:
        ImproperlyConfigured: One of them is not a port number.
    """
    values = [value.strip() for value in env.str(name, str(default)).split(",") if value.strip()]
    return tuple(_integer(name, value, 1, 65_535) for value in values)


def _integer(name: str, text: str, minimum: int, maximum: int) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text, re.ASCII) or not minimum <= int(text) <= maximum:
        raise ImproperlyConfigured(
            f"{name} must be an integer from {minimum} to {maximum}, not {text[:64]!r}."
        )
    return int(text)


def folder(env: Env, name: str) -> Path | None:
    """Return the folder in an environment variable as an absolute path, or None if it is empty."""
    text = env.str(name, "").strip()
    return Path(text).expanduser().absolute() if text else None


def folders(env: Env, name: str) -> tuple[Path, ...]:
    """Return the folders in an environment variable, separated as in PATH, as absolute paths."""
    values = [value for value in env.str(name, "").split(os.pathsep) if value.strip()]
    return tuple(Path(value.strip()).expanduser().absolute() for value in values)
