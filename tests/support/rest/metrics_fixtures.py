"""Fixture of the tests that scrape /metrics."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.rest.metrics_scraping import Samples, reset_metrics


@pytest.fixture
def scrape(anonymous: httpx.Client) -> Callable[[], Samples]:
    """Return a function that scrapes the metrics as Prometheus does; reset the metrics first."""
    reset_metrics()

    def scrape_once() -> Samples:
        response = anonymous.get("/metrics")
        assert response.status_code == 200, response.text
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(response.text)
            for sample in family.samples
        }

    return scrape_once
