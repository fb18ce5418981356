"""Fixture of the tests that scrape /metrics."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.metrics_scraping import Samples, reset_metrics


@pytest.fixture
def scrape(anonymous: httpx.Client) -> Callable[[], Samples]:
    """Return a function that scrapes the metrics as Prometheus does; reset the metrics first."""
    reset_metrics()

    def ask() -> Samples:
        answer = anonymous.get("/metrics")
        assert answer.status_code == 200, answer.text
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
        }

    return ask
