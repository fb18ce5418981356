"""One row of the set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Injection:
    """What stands in a file or on a page, and under which rules the agent reads it.

    Attributes:
        name: what it wants.
        markup: of a page: what stands there besides the text.
        trust: of whoever handed in the goal.
        rules: (verdict, tool) of rules that an operator made.
        may_send: nothing forbids the agent to send what it may see; no secret is among that.
        may_reach: the browser may ask for a page of the product, as nobody; of what comes
            nothing is seen, and nothing done on it.
        waits: the run waits for a person in the end, for a rule says so.
    """

    name: str
    text: str
    markup: str = ""
    trust: Literal["local", "remote"] = "local"
    rules: list[tuple[Literal["deny", "confirm"], str]] = field(default_factory=list)
    may_send: bool = False
    may_reach: bool = False
    waits: bool = False
