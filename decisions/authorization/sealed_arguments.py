"""The exact arguments that a decision is about: stored encrypted, for who decides alone.

They are bound to the decision's tool, target and digest, and to the state of what the call works
on. A person's answer names the digest of what was shown (`shown_digest`). Arguments that cannot be
shown whole are never confirmed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext, gettext_noop

from decisions.foundation.presentation.visible_text import SECRET_CLOSE, SECRET_OPEN
from decisions.foundation.security.keys import mac, mac_matches
from decisions.foundation.security.masking import map_texts
from decisions.foundation.security.sealed_columns import seal_column, unseal_column
from decisions.models import Decision
from decisions.signals import call_information

MAX_BYTES = 256 * 1024  # of the arguments as JSON
MAX_VALUES = 2_000  # texts, numbers and empty lists
TOOL_MAX = 128  # characters of the tool's name
NAME_MAX = 200  # characters of a value's name: its path of field names
_PURPOSE = "shown"
_COLUMN = "sealed_arguments"
_NOT_STORED = gettext_noop("They were not stored whole; refuse the call, and have it made again.")


class CannotBeShown(Exception):
    """Arguments that a person cannot see whole, with the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def check_showable(tool: str, args: Mapping[str, Any]) -> None:
    """Raise unless a person can see all of a call's arguments.

    Raises:
        CannotBeShown: They are larger than the limits above, not JSON, or not Unicode.
    """
    if len(tool) > TOOL_MAX:
        raise CannotBeShown(
            gettext("The tool's name has more than %(most)s characters.") % {"most": TOOL_MAX}
        )
    size = len(_encoded(args))
    if size > MAX_BYTES:
        text = gettext("The arguments have %(size)s bytes; at most %(most)s are shown.")
        raise CannotBeShown(text % {"size": size, "most": MAX_BYTES})
    for count, (name, _) in enumerate(leaves(args), start=1):
        if count > MAX_VALUES:
            text = gettext("The arguments have more than %(most)s values.")
            raise CannotBeShown(text % {"most": MAX_VALUES})
        if len(name) > NAME_MAX:
            text = gettext("A field's name has more than %(most)s characters.")
            raise CannotBeShown(text % {"most": NAME_MAX})


def seal_arguments(
    decision: Decision,
    args: Mapping[str, Any],
    basis: str | None = None,
    *,
    target_state: str = "",
    renewals: int = 0,
) -> bytes:
    """Return the arguments encrypted, bound to the tool, the target and the digest of a decision.

    Args:
        args: what is shown: names of secrets (`visible_text.secret_named`) in place of these.
        basis: digest of what the call's preview is computed from; None where it has no preview.
        target_state: as in `ToolCallRequest`.
        renewals: as in `Authorization`.
    """
    state = {
        "basis": basis,
        "target": target_state or None,
        "renewals": str(renewals or "") or None,
    }
    more = [{name: value for name, value in state.items() if value is not None}]
    texts = [*_bound_to(decision), json.dumps(args), *more]
    return seal_column(decision, _COLUMN, json.dumps(texts).encode())


def open_arguments(decision: Decision) -> Mapping[str, Any]:
    """Return the exact arguments of a decision; secrets stand in them by name.

    Raises:
        CannotBeShown: They were not stored, cannot be decrypted, or belong to another decision.
    """
    arguments: Mapping[str, Any] = json.loads(_plain(decision)[0])
    return arguments


def open_basis(decision: Decision) -> str | None:
    """Return the digest of what the call's preview was computed from when it was requested; None
    where it has no preview.

    Raises:
        CannotBeShown: As `open_arguments`.
    """
    return _plain(decision)[1].get("basis")


def stored_state(decision: Decision) -> Mapping[str, str]:
    """Return what is sealed beside the arguments, as text: `basis`, `target`, and `renewals`: how
    often the confirmation of the call was requested anew before. Each is missing where there is
    none; all are where they cannot be read.
    """
    try:
        return _plain(decision)[1]
    except CannotBeShown:
        return {}


def change_since_request(decision: Decision, basis: str | None) -> str:
    """Return what of the target or of what the call works on has changed since the call was
    requested, in a sentence; empty: nothing.

    Args:
        basis: as `CallInformation.basis_of` returns it.

    Raises:
        CannotBeShown: As `open_arguments`.
    """
    state = _plain(decision)[1].get("target")
    if state and state != call_information().target_state_of(state.partition(" ")[0]):
        return gettext("The target of this call has changed since the call was requested.")
    if basis != open_basis(decision):
        return gettext("What this call works on has changed since the call was requested.")
    return ""


def shown_digest(decision: Decision) -> str:
    """Return the digest that an answer to the decision names, 64 hex digits.

    Raises:
        CannotBeShown: As `open_arguments`.
    """
    return mac(_PURPOSE, _message(decision))


def is_shown_digest(decision: Decision, given: str) -> bool:
    """Tell, in constant time, whether a digest is the one that `shown_digest` returns.

    Raises:
        CannotBeShown: As `open_arguments`.
    """
    return mac_matches(_PURPOSE, _message(decision), given)


def readable_arguments(decision: Decision) -> Any:
    """Return the exact arguments with `⟨secret NAME⟩` in place of each secret, for a program.

    A text of the caller may contain `⟨secret NAME⟩` too, and characters that hide others: what a
    person reads is `decision_pages.visible_arguments`.

    Raises:
        CannotBeShown: As `open_arguments`.
    """
    named = re.compile(f"{SECRET_OPEN}([^{SECRET_CLOSE}]*){SECRET_CLOSE}")

    def named_secret(text: str) -> str:
        return named.sub(r"⟨secret \1⟩", text)

    return map_texts(open_arguments(decision), named_secret, change_name=named_secret)


def arguments_size(decision: Decision) -> int | None:
    """Return the bytes of the exact arguments as JSON; None if they cannot be read."""
    try:
        return len(
            json.dumps(open_arguments(decision), ensure_ascii=False).encode("utf-8", "replace")
        )
    except CannotBeShown:
        return None


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value that is shown by itself, with its name: `env.PATH`, `items[0]`."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from leaves(item, _child(name, str(key)))
    elif isinstance(value, list | tuple) and value:
        for index, item in enumerate(value):
            yield from leaves(item, f"{name}[{index}]")
    else:
        yield name, value


def _child(name: str, key: str) -> str:
    if not key.replace("_", "").replace("-", "").isalnum():
        return f"{name}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{name}.{key}" if name else key


def _encoded(args: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(args, allow_nan=False, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise CannotBeShown(gettext("A text of the arguments is not valid Unicode.")) from None
    except (TypeError, ValueError, RecursionError):
        raise CannotBeShown(gettext("The arguments are not JSON.")) from None


def _bound_to(decision: Decision) -> list[str | None]:
    return [decision.tool, decision.target_id, decision.subject_digest]


def _plain(decision: Decision) -> tuple[str, Mapping[str, str]]:
    """Return the arguments as JSON, and what they stand with: the basis of the call's preview, and
    the state of its target.
    """
    if decision.sealed_arguments is None:
        raise CannotBeShown(gettext(_NOT_STORED))
    try:
        values = json.loads(unseal_column(decision, _COLUMN))
    except ValueError:
        raise CannotBeShown(
            gettext("They cannot be decrypted for this decision with this installation's keys.")
        ) from None
    more = values.pop() if isinstance(values[-1], dict) else {}
    *bound_to, arguments = values
    if bound_to != _bound_to(decision):
        raise CannotBeShown(gettext("They do not belong to this decision."))
    return str(arguments), more


def _message(decision: Decision) -> bytes:
    arguments, state = _plain(decision)
    content = hashlib.sha256(arguments.encode()).hexdigest()
    return json.dumps([decision.pk, decision.subject_digest, content, state]).encode()
