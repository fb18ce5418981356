"""Labelled messages for the gate: our own set, and a set written without knowledge of the rules."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decisions.chat.risk.detection import find_risk

DATA = Path(__file__).parents[2] / "data"


@dataclass(frozen=True, slots=True)
class Labelled:
    """A message and its label; `before` is the previous message of its session."""

    text: str
    risky: bool
    rule: str | None
    task_type: str
    language: str
    before: str = ""

    @property
    def found(self) -> str | None:
        """Return the rule that matches the message, or None."""
        finding = find_risk(self.text, previous=self.before)
        return str(finding.rule) if finding else None


def own_set() -> list[Labelled]:
    """Return our own messages."""
    return [
        Labelled(
            row["text"],
            row["rule"] is not None,
            row["rule"],
            row["task_type"],
            row["lang"],
            row.get("before", ""),
        )
        for row in _rows("gate_labelled.jsonl")
    ]


def blind_set() -> list[Labelled]:
    """Return the messages that another author wrote before the rules existed."""
    return [
        Labelled(row["message"], row["risky"], None, row["task_type"], "")
        for row in _rows("gate_blind.jsonl")
    ]


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


def measure(messages: list[Labelled]) -> dict[str, Any]:
    """Return the true positives, false negatives, false positives, precision and recall."""
    hits = [(message.risky, message.found is not None) for message in messages]
    found, false = hits.count((True, True)), hits.count((False, True))
    missed = hits.count((True, False))
    return {
        "messages": len(messages),
        "found": found,
        "missed": missed,
        "false": false,
        "precision": round(found / max(1, found + false), 4),
        "recall": round(found / max(1, found + missed), 4),
    }
