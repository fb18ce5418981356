"""Log records as JSON lines, with secrets redacted."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from decisions.foundation.security.masking import Masker

_NAME = r"(?i:password|passwd|secret|token|api[_-]?key)"
_HEADER = r"(?i:(?:proxy-)?authorization|(?:set-)?cookie)"
_IS = r"(?:\\*[\"'])?\s*[=:]\s*"
_NO_PRINCIPAL = r"(?!(?<=token:)tok_[0-9a-hjkmnp-tv-z]{26}\b)"  # `token:tok_…` only names a token
_QUOTED = r"\\*\"[^\"\r\n]*\"|\\*'[^'\r\n]*'"
# Bearer tokens, whole headers, passwords in URLs and in key=value texts.
_SECRETS = re.compile(
    rf"cty_[\w-]{{8,}}"
    # Capability URLs: confirmation links and one-time logins.
    rf"|(?<=/confirm/)cnf_\w+/[\w-]+|(?<=/admin/once/)[\w-]+"
    # Keys of well-known services, recognized by their prefix.
    rf"|\b(?:sk-[\w-]{{16,}}|gh[pousr]_\w{{20,}}|github_pat_\w{{20,}}|xox[abprs]-[\w-]{{10,}})"
    rf"|\bAKIA[0-9A-Z]{{16}}\b"
    rf"|{_HEADER}{_IS}(?:{_QUOTED}|[^\"'\r\n]+)"
    rf"|(?i:bearer)\s+\S+"
    rf"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"
    rf"|{_NAME}{_IS}{_NO_PRINCIPAL}(?:{_QUOTED}|[^\s\"',;&}}\])]+)"
)
_HOLDS_SECRET = re.compile(rf"[\w-]*{_NAME}|{_HEADER}")
# What json does not escape: characters that terminals or line readers act on, and surrogates.
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

_active: list[Masker] = []  # maskers of the secrets in use by this process


@contextmanager
def hiding(masker: Masker) -> Iterator[None]:
    """Mask these values in every log line of the process for the length of a block."""
    if not masker:
        yield
        return
    _active.append(masker)
    try:
        yield
    finally:
        _active.remove(masker)


def redact(text: str) -> str:
    """Return the text with known secrets, and what looks like a secret, replaced by ***."""
    for masker in tuple(_active):
        text = masker.text(text)
    return _SECRETS.sub("***", text)


def redact_value(value: Any) -> Any:
    """Return a value as JSON with secrets replaced by ***: texts as `redact` does, and the values
    of fields whose name marks a secret.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {
            str(key): "***" if _HOLDS_SECRET.fullmatch(str(key)) else redact_value(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [redact_value(item) for item in value]
    return redact(str(value))


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):  # the arguments do not match the format string
        return f"{record.msg} {record.args!r}"


class RedactSecrets(logging.Filter):
    """The filter of every handler: redacts secrets."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact the record's message and its extra fields; return True."""
        record.msg, record.args = redact(_message(record)), None
        for name, value in vars(record).items():
            if name not in _STANDARD:
                setattr(record, name, redact_value({name: value})[name])
        return True


class WithoutRefusals(logging.Filter):
    """Drops the lines that Django writes about requests it refused (4xx): any stranger causes them,
    and nothing failed. The audit log and the metrics record refusals.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is about something other than a refused request."""
        status = getattr(record, "status_code", 500)
        is_refusal = isinstance(status, int) and status < 500
        return not (record.name.startswith("django.") and is_refusal)


class JSONLines(logging.Formatter):
    """One JSON object per line; control characters are escaped, so that no value forges a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            line["exception"] = redact(self.formatException(record.exc_info))
        text = json.dumps(line, ensure_ascii=False, default=str)
        return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
