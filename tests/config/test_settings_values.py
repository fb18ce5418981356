"""Environment variables of the settings: an invalid value is reported by name, before anything
else."""

from __future__ import annotations

import os

import pytest
from django.core.exceptions import ImproperlyConfigured
from environ import Env

from config.home import integer, ports

NAME = "CONTINUITY_OF_A_TEST"


@pytest.mark.parametrize("text", ["x", "-1", "0", "1.5", "1e3", "101", "٣", "1_0", "9" * 5000])
def test_a_number_out_of_its_range_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv(NAME, text)
    with pytest.raises(ImproperlyConfigured, match=f"{NAME} must be .* from 1 to 100"):
        integer(Env(), NAME, 20, minimum=1, maximum=100)


@pytest.mark.parametrize(("text", "number"), [("", 20), (" 7 ", 7), ("100", 100), (None, 20)])
def test_a_number_in_its_range_is_accepted(
    monkeypatch: pytest.MonkeyPatch, text: str | None, number: int
) -> None:
    if text is not None:
        monkeypatch.setenv(NAME, text)
    assert (NAME in os.environ) == (text is not None)
    assert integer(Env(), NAME, 20, minimum=1, maximum=100) == number


@pytest.mark.parametrize("text", ["x", "8000;8001", "0", "65536", "-1"])
def test_an_invalid_port_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(NAME, f"80,{text}")
    with pytest.raises(ImproperlyConfigured, match=NAME):
        ports(Env(), NAME, 8000)


@pytest.mark.parametrize(
    ("text", "expected"), [("", ()), ("80, 8443,", (80, 8443)), (None, (8000,))]
)
def test_ports_are_separated_by_commas(
    monkeypatch: pytest.MonkeyPatch, text: str | None, expected: tuple[int, ...]
) -> None:
    if text is not None:
        monkeypatch.setenv(NAME, text)
    assert ports(Env(), NAME, 8000) == expected
