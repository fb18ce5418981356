"""The input with which a caller chooses a browser of its own for a run."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

SelectedClientId = Annotated[
    str | None,
    Field(
        alias="selectedClientId",
        min_length=1,
        max_length=64,
        description="The browser that you paired, in which the run acts: its plc_… id, or plugin"
        " for the one that is connected. Default: a browser of the worker.",
    ),
]
