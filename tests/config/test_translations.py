"""The catalogues of translations are complete, compiled, and fit the texts that they translate."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.apps import apps

from tests.support.admin.catalogue import (
    catalogues,
    compiled,
    messages_of_pages,
    messages_of_scripts,
    translations,
)

PLACE = re.compile(r"%\(\w+\)[sd]|%[sd]")


def test_there_are_catalogues_of_pages_and_of_scripts() -> None:
    assert [path.name for path in catalogues()] == ["django.po", "djangojs.po"]


@pytest.mark.parametrize("catalogue", catalogues(), ids=lambda path: path.stem)
def test_the_compiled_catalogue_has_the_translations_of_the_text(catalogue: Path) -> None:
    assert compiled(catalogue) == translations(catalogue), "run: manage.py compilemessages"


@pytest.mark.parametrize("catalogue", catalogues(), ids=lambda path: path.stem)
def test_each_message_has_a_translation(catalogue: Path) -> None:
    assert "fuzzy" not in catalogue.read_text()
    assert [message for message, text in translations(catalogue).items() if not text] == []


@pytest.mark.parametrize("catalogue", catalogues(), ids=lambda path: path.stem)
def test_a_translation_names_the_same_values_as_its_message(catalogue: Path) -> None:
    for message, text in translations(catalogue).items():
        assert sorted(PLACE.findall(text)) == sorted(PLACE.findall(message)), message


def test_each_marked_text_of_the_product_is_in_its_catalogue() -> None:
    pages, scripts = catalogues()
    assert messages_of_pages() - translations(pages).keys() == set(), "run: manage.py makemessages"
    assert messages_of_scripts() - translations(scripts).keys() == set()
    assert len(messages_of_pages()) > 500


def test_each_model_has_a_name_in_chinese_because_pages_list_permissions() -> None:
    ours = [apps.get_app_config(part) for part in ("artifacts", "decisions", "runners", "runs")]
    names = {model._meta.verbose_name for part in ours for model in part.get_models()}
    assert names - translations(catalogues()[0]).keys() == set()
