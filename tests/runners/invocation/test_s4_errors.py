"""Refusals in the shape of S4: each kind has its code, and a hint in the reader's language."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from decisions.foundation.errors import Refused
from runners.invocation.workspace_errors import _REFUSALS, as_workspace_error

REFUSAL_CLASSES = [refusal_class for refusal_class, _, _ in _REFUSALS]


@pytest.mark.parametrize("refusal_class", REFUSAL_CLASSES)
def test_a_refusal_has_a_hint_in_the_readers_language(
    settings: Any, refusal_class: type[Refused]
) -> None:
    hints = {}
    for language in ("ZH", "EN"):
        settings.WORKSPACE_POLICY = replace(settings.WORKSPACE_POLICY, language=language)
        hints[language] = as_workspace_error(refusal_class("no"))["error"]["hint"]
    assert (hints["EN"].isascii(), hints["ZH"].isascii()) == (True, False)
