"""The words that browser tools and templates share: what to read, what to wait for (runs.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictStr, model_validator

from runners.base import Closed


def _whole_number(value: object) -> object:
    """Take 5 and 5.0 (JSON Schema counts both as integers), not true, "5" or 5.5."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be an integer")
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("must be an integer")
    return int(value)


Whole = Annotated[int, BeforeValidator(_whole_number)]


class ExtractOptions(Closed):
    """What to read of a page, and how much of it."""

    page_info: StrictBool = Field(
        default=True, alias="pageInfo", description="Title, type, summary and the usable elements."
    )
    content: StrictBool = Field(
        default=True, description="The text, as sections under their headings."
    )
    max_elements: Whole = Field(
        default=50, ge=1, le=1000, alias="maxElements", description="Elements listed at most."
    )
    max_content_length: Whole = Field(
        default=4000,
        ge=1,
        le=50_000,
        alias="maxContentLength",
        description="Characters of content at most.",
    )


class WaitCondition(Closed):
    """What must be true before the page is read; `value` is needed by every type but `stable`."""

    type: Literal["selector", "urlContains", "textIncludes", "stable"] = Field(
        description="A visible element, a part of the address or text, or a page at rest."
    )
    value: StrictStr | None = Field(default=None, min_length=1, max_length=2000)
    timeout_ms: Whole = Field(default=10_000, ge=1, le=120_000, alias="timeoutMs")

    @model_validator(mode="after")
    def _has_value(self) -> WaitCondition:
        if self.type != "stable" and self.value is None:
            raise ValueError(f"value is required for type {self.type}")
        return self
