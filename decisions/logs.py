"""How logs are written: one JSON object a line, secrets taken out."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any

# Bearer tokens of ours and of others, passwords in URLs and in key=value texts.
_SECRETS = re.compile(
    r"cty_[\w-]{8,}|(?i:bearer)\s+\S+|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
    r"|(?i:password|passwd|secret|token|api_?key|authorization|cookie)[\"']?\s*[=:]\s*[\"']?[^\s\"',;}]+"
)
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def redact(text: str) -> str:
    """Return the text with everything that looks like a secret replaced by ***."""
    return _SECRETS.sub("***", text)


class RedactSecrets(logging.Filter):
    """The one filter that every record passes."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Replace secrets in the record's message and in its string extras."""
        record.msg, record.args = redact(record.getMessage()), None
        for name, value in vars(record).items():
            if name not in _OWN and isinstance(value, str):
                setattr(record, name, redact(value))
        return True


class JSONLines(logging.Formatter):
    """One JSON object a line: control characters are escaped, so no value can forge a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info:
            line["exception"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False, default=str)
