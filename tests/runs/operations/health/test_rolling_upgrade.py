"""What doctor says about a rolling upgrade."""

from __future__ import annotations

from typing import Any

from runs.operations.health.checks import check_rolling_upgrade


def test_doctor_reminds_of_an_upgrade_that_is_not_finished(settings: Any) -> None:
    assert check_rolling_upgrade().verdict == "ok"
    settings.ROLLING_UPGRADE = True
    found = check_rolling_upgrade()
    assert found.verdict == "note"
    assert "CONTINUITY_ROLLING_UPGRADE is set" in found.what
