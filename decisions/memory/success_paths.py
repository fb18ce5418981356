"""Validation of Shells and success paths (S2 §2), their slots, and suggested success paths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from decisions.foundation.errors import InvalidInput
from decisions.foundation.presentation.formatting import shorten

_SLOT = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,63})\}")


def shell_payload(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the validated payload of a Shell.

    Raises:
        InvalidInput: An inferred Shell has no evidence.
    """
    evidence = str(call.get("evidence", "")).strip()
    if call["source"] == "inferred" and not evidence:
        raise InvalidInput("evidence: required for a Shell with source inferred.")
    payload = {name: call[name] for name in ("social_interface", "narratives", "source")}
    return payload | ({"evidence": evidence} if evidence else {})


def path_payload(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the validated payload of a success path.

    Raises:
        InvalidInput: A slot that is required or used by a step has no definition, or a text is
            blank.
    """
    for name in ("intent", "success_criteria"):
        if not call[name].strip():
            raise InvalidInput(f"{name}: it is blank.")
    procedure, defined = call["procedure"], call["slot_definitions"]
    if isinstance(procedure, str) and not procedure.strip():
        raise InvalidInput("procedure: it is blank.")
    for name, meaning in defined.items():
        if not meaning or (isinstance(meaning, str) and not meaning.strip()):
            raise InvalidInput(f"slot_definitions.{name}: it is empty.")
    used = slots_of(procedure) if isinstance(procedure, list) else set()
    missing = [name for name in (*call["required_slots"], *sorted(used)) if name not in defined]
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        raise InvalidInput(f"slot_definitions: missing for {names}.")
    return {
        "intent": call["intent"],
        "required_slots": list(dict.fromkeys(call["required_slots"])),
        "slot_definitions": dict(defined),
        "procedure": procedure,
        "success_criteria": call["success_criteria"],
        "tags": list(dict.fromkeys(call["tags"])),
    }


def slots_of(value: Any) -> set[str]:
    """Return the names of the slots in a JSON value, written as `${slot}`."""
    return {name for text in _texts(value) for name in _SLOT.findall(text)}


def fill_slots(value: Any, slots: Mapping[str, Any]) -> Any:
    """Return a JSON value with its slots replaced by their values.

    A text that is exactly one slot becomes the slot's value, of any type; in other texts the value
    is inserted as text.

    Raises:
        KeyError: A slot has no value.
    """
    if isinstance(value, str):
        whole = _SLOT.fullmatch(value)
        if whole:
            return slots[whole[1]]
        return _SLOT.sub(lambda found: str(slots[found[1]]), value)
    if isinstance(value, Mapping):
        return {key: fill_slots(item, slots) for key, item in value.items()}
    return [fill_slots(item, slots) for item in value] if isinstance(value, list) else value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def propose_path(
    report: Mapping[str, Any], intent: str, slots: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the success path suggested by a reported success, as PUT_SUCCESS_PATH_INPUT without
    the user; None without a procedure, success criteria or intent.

    It is not saved: the user, or their agent, decides what is stored.
    """
    criteria = str(report.get("success_criteria") or slots.get("success_criteria") or "").strip()
    procedure, intent = report.get("procedure"), intent.strip() or report["outcome_note"].strip()
    if not procedure or not criteria or not intent:
        return None
    used = sorted(slots_of(procedure)) if isinstance(procedure, list) else []
    return {
        "name": shorten(intent, 80),
        "intent": shorten(intent, 2000),
        "required_slots": used,
        "slot_definitions": {name: _meaning(name, slots) for name in used},
        "procedure": procedure,
        "success_criteria": shorten(criteria, 2000),
        "confidence": "low",
        "validity": "medium",
        "tags": ["proposed"],
    }


def _meaning(name: str, slots: Mapping[str, Any]) -> str:
    label = name.replace("_", " ")
    return f"{label}, such as: {shorten(str(slots[name]), 200)}" if name in slots else label
