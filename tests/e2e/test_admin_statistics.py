"""The plots in a real Chromium: they are drawn, and a point links to the runs behind it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from runs.models import Run
from runs.statistics.folding import fold_statistics
from tests.support.admin.live_pages import save_screenshot
from tests.support.admin.visitor import Visitor

DRAWN = "[...document.querySelectorAll('[data-plot]')].every((card) => card.chart)"


@pytest.mark.slow
def test_a_click_on_a_point_opens_the_runs_behind_it(
    visitor: Visitor, make_run: Callable[..., Run]
) -> None:
    at = datetime.now(UTC) - timedelta(hours=2)
    failed = make_run(status="failed", created_at=at, started_at=at)
    make_run(status="failed")
    fold_statistics()
    visitor.open("/admin/statistics/?range=24h")
    visitor.do(visitor.page.wait_for_function(DRAWN))
    save_screenshot(visitor, "statistics")
    visitor.wait_for("[data-plot=runs] [data-plot-total]:has-text('2 runs')")
    bar = """() => {
      const chart = document.querySelector("[data-plot=runs]").chart;
      const set = chart.data.datasets.findIndex((one) => one.label === "failed");
      const at = chart.data.datasets[set].data.findIndex((value) => value);
      const { x, y } = chart.getDatasetMeta(set).data[at].getProps(["x", "y"]);
      const box = chart.canvas.getBoundingClientRect();
      return [box.x + x, box.y + y + 3];
    }"""
    x, y = visitor.do(visitor.page.evaluate(bar))
    visitor.do(visitor.page.mouse.click(x, y))
    visitor.wait_for(f"#result_list a[href*='{failed.id}']")
    assert visitor.do(visitor.page.locator("#result_list tbody").count()) == 1
