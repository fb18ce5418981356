"""Errors of pydantic models as one sentence."""

from __future__ import annotations

from pydantic import ValidationError


def first_error(error: ValidationError, *, whole: str = "the arguments") -> str:
    """Return `path: message` of the first error, without the value, at most 300 characters.

    Args:
        whole: stands for the path of an error of the whole value.
    """
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    path = ".".join(map(str, first["loc"]))[:200] or whole
    return f"{path}: {first['msg'].removeprefix('Value error, ')}"[:300]
