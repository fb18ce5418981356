"""What the settings need of CONTINUITY_HOME before Django is up: keys, the socket's place, the
artifact storage.
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


def load_or_create_keys(continuity_home: Path) -> list[str]:
    """Return the installation's secret keys, newest first, made on the first call and readable by
    the owner alone.

    Safe when several processes start at once: the file appears whole or not at all.

    Raises:
        ImproperlyConfigured: The home cannot be made, written or read.
    """
    path = continuity_home / "keys"
    try:
        return _load_or_make(path)
    except OSError as error:
        raise ImproperlyConfigured(
            f"CONTINUITY_HOME={continuity_home} cannot be used: {error.strerror}."
            " Name a folder that this user may write to."
        ) from None


def _load_or_make(path: Path) -> list[str]:
    continuity_home = path.parent
    if not path.exists():
        continuity_home.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd, draft = tempfile.mkstemp(dir=continuity_home, prefix=".keys-")
        with os.fdopen(fd, "w") as file:
            file.write(secrets.token_urlsafe(48) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # fails where another process was first; its keys are the keys
        except FileExistsError:
            pass
        finally:
            Path(draft).unlink()
    return path.read_text().split()


def derive_key(key: str, purpose: str) -> str:
    """Return a key for one purpose, so that no two uses share one."""
    return hmac.new(key.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def redis_socket(continuity_home: Path) -> Path:
    """Return the private server's socket path, in a short private directory when the home lies too
    deep.
    """
    path = continuity_home / "redis" / "redis.sock"
    if len(os.fsencode(path)) <= SOCKET_PATH_MAX:
        return path
    name = hashlib.sha256(os.fsencode(continuity_home)).hexdigest()[:16]
    # Not the TMPDIR of whoever asks: every process of this user has to find the same socket.
    return Path("/tmp") / f"continuity-{os.getuid()}-{name}" / "redis.sock"  # noqa: S108


def artifact_storage(url: str, continuity_home: Path) -> dict[str, Any]:
    """Return the STORAGES entry for a file path, file: URL or s3://bucket/prefix?endpoint=… URL (''
    = embedded).
    """
    parts = urlsplit(url)
    if parts.scheme == "s3":
        if parts.username or parts.password or not parts.hostname:
            raise ImproperlyConfigured(
                "CONTINUITY_ARTIFACT_STORAGE has to be s3://bucket/prefix?endpoint=… without"
                " credentials; those come as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            )
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        endpoint = query.get("endpoint")
        options: dict[str, Any] = {
            "bucket_name": parts.netloc,
            "location": parts.path.strip("/"),
            "endpoint_url": endpoint,
            # The address at which callers reach the same server, where that is another.
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


def choice(env: Env, name: str, *known: str) -> str:
    """Return an environment variable's value, which has to be one of those known; the first is the
    default.

    Raises:
        ImproperlyConfigured: It is another.
    """
    value: str = env.str(name, known[0])
    if value not in known:
        raise ImproperlyConfigured(f"{name} has to be {' or '.join(known)}, not {value!r}.")
    return value


def integer(env: Env, name: str, default: int, *, least: int, most: int = 2**31 - 1) -> int:
    """Return the whole number that an environment variable is.

    Raises:
        ImproperlyConfigured: It is none, or not between `least` and `most`.
    """
    return _whole(name, env.str(name, "").strip() or str(default), least, most)


def ports(env: Env, name: str, default: int) -> tuple[int, ...]:
    """Return the ports that an environment variable names, separated by commas.

    Raises:
        ImproperlyConfigured: One of them is none.
    """
    named = [one.strip() for one in env.str(name, str(default)).split(",") if one.strip()]
    return tuple(_whole(name, one, 1, 65_535) for one in named)


def _whole(name: str, text: str, least: int, most: int) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text, re.ASCII) or not least <= int(text) <= most:
        raise ImproperlyConfigured(
            f"{name} has to be a whole number from {least} to {most}, not {text[:64]!r}."
        )
    return int(text)


def folder(env: Env, name: str) -> Path | None:
    """Return the folder that an environment variable names, absolute; None where it names none."""
    text = env.str(name, "").strip()
    return Path(text).expanduser().absolute() if text else None


def folders(env: Env, name: str) -> tuple[Path, ...]:
    """Return the folders that an environment variable names, as PATH names them."""
    named = [one for one in env.str(name, "").split(os.pathsep) if one.strip()]
    return tuple(Path(one.strip()).expanduser().absolute() for one in named)
