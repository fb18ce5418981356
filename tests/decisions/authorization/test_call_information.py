"""What authorization reads of runs and targets: provided by the part above."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from decisions import signals
from decisions.signals import call_information


def test_without_a_provider_the_error_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signals, "_providers", [])
    with pytest.raises(ImproperlyConfigured, match="Add `runs` to INSTALLED_APPS"):
        call_information()
