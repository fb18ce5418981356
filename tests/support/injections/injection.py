"""The dataclass of one prompt injection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Injection:
    """The text of a file or page, and the policy under which the agent reads it.

    Attributes:
        name: the aim of the injection.
        markup: markup that a page contains besides the text.
        trust: the trust level of the caller who submits the goal.
        rules: (verdict, tool) of each policy rule that the operator created.
        may_send: policy allows the agent to send text that it may read; it contains no secret.
        may_reach: the browser may request a page of the product, without a login; the agent can
            neither read the response nor act on it.
        waits: a rule requires confirmation, so the run ends up waiting for a person.
    """

    name: str
    text: str
    markup: str = ""
    trust: Literal["local", "remote"] = "local"
    rules: list[tuple[Literal["deny", "confirm"], str]] = field(default_factory=list)
    may_send: bool = False
    may_reach: bool = False
    waits: bool = False
