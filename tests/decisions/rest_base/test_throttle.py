"""Rate limits while Redis is unavailable or slow."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest

from decisions.foundation.infra import redis
from decisions.rest_base.throttle import CallCounter


def test_without_redis_no_call_is_throttled_and_the_log_reports_it_once(
    settings: Any, tmp_path: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/none.sock"
    monkeypatch.setattr(redis, "RETRY_AFTER_S", 0.0)
    counter = CallCounter()
    with caplog.at_level(logging.WARNING):
        assert not any(counter.exceeds("a caller", limit=0) for _ in range(20))
    assert len(caplog.records) == 1


def test_no_call_waits_for_a_redis_that_was_unavailable_a_moment_ago(settings: Any) -> None:
    settings.REDIS_URL = "redis://192.0.2.1:6379/0"  # never answers
    counter = CallCounter()
    counter.exceeds("a caller", limit=0)
    started = time.monotonic()
    assert not any(counter.exceeds("a caller", limit=0) for _ in range(1000))
    assert time.monotonic() - started < 100  # 500 s if each waited


def test_a_call_over_the_limit_is_throttled_for_that_name_only() -> None:
    counter, name = CallCounter(), f"somebody-{time.time_ns()}"
    exceeded = [counter.exceeds(name, limit=3) for _ in range(12)]
    assert exceeded[0] is False
    assert True in exceeded
    assert not counter.exceeds(name + "-else", limit=3)
