"""What may be written of a person and of ways that worked (S2 §2: rules of the back end)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from decisions.errors import InvalidInput
from decisions.presentation.formatting import shorten

_SLOT = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,63})\}")


def shell_payload(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a Shell says.

    Raises:
        InvalidInput: It is inferred, and nothing is said of what from.
    """
    evidence = str(call.get("evidence", "")).strip()
    if call["source"] == "inferred" and not evidence:
        raise InvalidInput("evidence: a Shell that is inferred has to say what from.")
    said = {name: call[name] for name in ("social_interface", "narratives", "source")}
    return said | ({"evidence": evidence} if evidence else {})


def path_payload(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a success path says.

    Raises:
        InvalidInput: A slot that is required, or that a step uses, has no definition; a text is
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
            raise InvalidInput(f"slot_definitions.{name}: it says nothing.")
    used = slots_of(procedure) if isinstance(procedure, list) else set()
    missing = [name for name in (*call["required_slots"], *sorted(used)) if name not in defined]
    if missing:
        told = ", ".join(dict.fromkeys(missing))
        raise InvalidInput(f"slot_definitions: there is none for {told}.")
    return {
        "intent": call["intent"],
        "required_slots": list(dict.fromkeys(call["required_slots"])),
        "slot_definitions": dict(defined),
        "procedure": procedure,
        "success_criteria": call["success_criteria"],
        "tags": list(dict.fromkeys(call["tags"])),
    }


def slots_of(value: Any) -> set[str]:
    """Return the slots that a JSON value names as `${slot}`."""
    return {name for text in _texts(value) for name in _SLOT.findall(text)}


def fill_slots(value: Any, slots: Mapping[str, Any]) -> Any:
    """Return a JSON value with its slots filled in: a text that is one slot alone becomes the
    slot's value, whatever its type; others have it written into them.

    Raises:
        KeyError: A slot has no value.
    """
    if isinstance(value, str):
        alone = _SLOT.fullmatch(value)
        if alone:
            return slots[alone[1]]
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
    """Return the success path that a success suggests, as PUT_SUCCESS_PATH_INPUT takes it without
    the user; None where it does not say how it was done, or by what one sees that it worked.

    Nothing is written: what is kept of a user is for the user, or their agent, to say.
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
    words = name.replace("_", " ")
    return f"{words}, such as: {shorten(str(slots[name]), 200)}" if name in slots else words
