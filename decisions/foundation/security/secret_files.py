"""Secrets from files: NAME_FILE names a file that has the value of the variable NAME."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path

SECRETS = (
    "DATABASE_URL",
    "REDIS_URL",
    "CONTINUITY_SECRET_KEYS",
    "CONTINUITY_LLM_API_KEY",
    "CONTINUITY_EMAIL_URL",
    "CONTINUITY_RUNNER_TOKEN",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
)


class SecretFileUnusable(Exception):
    """A file of a secret cannot be read, or the variable is set too; the message names both."""


def read_secret_files(environ: MutableMapping[str, str]) -> None:
    """Set each variable whose file is named, without the white space around the value.

    Raises:
        SecretFileUnusable: A file cannot be read or is empty, or the variable is set too.
    """
    for name in SECRETS:
        path = environ.get(f"{name}_FILE", "")
        if not path:
            continue
        if environ.get(name):
            raise SecretFileUnusable(f"{name} and {name}_FILE are both set. Set one of them.")
        try:
            value = Path(path).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise SecretFileUnusable(f"{name}_FILE={path} cannot be read: {reason}.") from None
        if not value:
            raise SecretFileUnusable(f"{name}_FILE={path} is empty.")
        environ[name] = value
        del environ[f"{name}_FILE"]
