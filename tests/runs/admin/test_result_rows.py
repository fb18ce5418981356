"""The cells of the admin's lists are those of Unfold, though they are not rendered by its tag."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client
from unfold.templatetags.unfold_list import result_headers, results

from decisions.models import Token
from decisions.templatetags.result_rows import columns_of, rows_of
from runs.models import Run
from tests.support.admin.every_page import lists, rows_of_every_kind


def normal(html: str) -> str:
    """Return the markup of a row without what may differ: blanks in tags, times relative to now,
    and the label of the first cell, which Unfold calls a checkbox also if it is none.
    """
    html = re.sub(r"\s+>", ">", re.sub(r' data-label="[^"]*"', "", html, count=1))
    return re.sub(r"just now|(in )?[\d]+ (s|min)( ago|\b)", "", html)


@pytest.mark.slow
def test_the_cells_of_every_list_are_those_of_unfold(
    superuser_client: Client,
    make_run_with_steps: Callable[..., Run],
    make_artifact: Callable[..., str],
    make_task: Callable[..., str],
    tmp_path: Path,
) -> None:
    rows_of_every_kind(make_run_with_steps, make_artifact, make_task, tmp_path, count=2)
    for path in lists():
        cl = superuser_client.get(path).context["cl"]
        ours = [*rows_of(cl, columns_of(cl, list(result_headers(cl))))]
        unfolds = ["".join(row) for row in results(cl)]
        assert [normal(row) for row in ours] == [normal(row) for row in unfolds], path


def test_a_name_that_is_markup_is_shown_as_text(superuser_client: Client, token: str) -> None:
    Token.objects.update(name="<b>agent</b>")
    page = superuser_client.get("/admin/decisions/token/").content.decode()
    assert "&lt;b&gt;agent&lt;/b&gt;" in page
    assert "<b>agent</b>" not in page
