"""What can be said of the model of agent runs, and what doctor says of it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from environ import Env

from config.llm import llm_settings, max_cost_usd, usd_amount
from runners.llm.base import LlmSettings, Price
from runs.installation.health.checks import check_llm
from runs.installation.home.state import StackInfo
from tests.support.model_server import ModelServer
from tests.support.model_turns import Turn

pytest_plugins = ["tests.support.model_fixtures"]
LIGHT = """
import importlib, pkgutil, sys, django
django.setup()
import artifacts, config, decisions, mcp_server, runners, runs
for part in (decisions, artifacts, runners, runs, mcp_server, config):
    for found in pkgutil.walk_packages(part.__path__, part.__name__ + "."):
        if not found.name.startswith("runners.llm."):
            importlib.import_module(found.name)
from runs.task_templates.registry import list_templates
list_templates()
names = "config.asgi config.celery runs.worker.worker runs.scheduler.jobs runs.agent.loop"
for name in names.split():
    assert name in sys.modules, name
print([name for name in ("openai", "anthropic", "runners.llm.gateway") if name in sys.modules])
"""


@pytest.mark.parametrize(
    "address",
    ["localhost:11434", "ftp://a/v1", "http://", "http://me:pass@host/v1", "http://host/v1?key=x"],
)
def test_an_address_that_is_none_is_refused_without_being_told(address: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="CONTINUITY_LLM_BASE_URL") as refused:
        llm_settings(base_url=address, price="")
    assert "pass" not in str(refused.value)


@pytest.mark.parametrize("key", ["sk-secret…", "sk secret", "sk-secret\x00", "ключ-secret"])
def test_a_key_that_no_server_could_be_sent_is_refused_without_being_told(key: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="CONTINUITY_LLM_API_KEY") as refused:
        llm_settings(base_url="", price="", api_key=key)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("price", ["1.25", "a/b", "1/", "-1/2", "1/2/3", "1e3/2"])
def test_a_price_that_is_none_is_refused(price: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="CONTINUITY_LLM_PRICE"):
        llm_settings(base_url="", price=price)


def test_a_price_is_two_amounts_for_a_million_tokens() -> None:
    told = llm_settings(base_url="https://host/v1/", price="1.25/10", model="m")
    assert told == LlmSettings(model="m", base_url="https://host/v1", price=Price(1.25, 10.0))
    assert told.price is not None
    assert told.price.of(1_000_000, 100_000) == 2.25


def test_a_limit_of_money_may_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert usd_amount(Env(), "CONTINUITY_OF_A_TEST") is None
    monkeypatch.setenv("CONTINUITY_OF_A_TEST", "2.50")
    assert usd_amount(Env(), "CONTINUITY_OF_A_TEST") == 2.5
    monkeypatch.setenv("CONTINUITY_OF_A_TEST", "two")
    with pytest.raises(ImproperlyConfigured, match="CONTINUITY_OF_A_TEST"):
        usd_amount(Env(), "CONTINUITY_OF_A_TEST")


def test_a_limit_of_money_needs_a_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTINUITY_OF_A_TEST", "2.50")
    assert max_cost_usd(Env(), "CONTINUITY_OF_A_TEST", LlmSettings()) == 2.5  # there is no model
    priced = LlmSettings(model="m", price=Price(1, 2))
    assert max_cost_usd(Env(), "CONTINUITY_OF_A_TEST", priced) == 2.5
    with pytest.raises(ImproperlyConfigured, match="CONTINUITY_LLM_PRICE"):
        max_cost_usd(Env(), "CONTINUITY_OF_A_TEST", LlmSettings(model="m"))


def test_no_model_is_no_reason_to_worry(settings: Any) -> None:
    settings.LLM = LlmSettings()
    found = check_llm()
    assert (found.verdict, found.what) == ("note", "no model is set; only agents need one")
    assert "CONTINUITY_LLM_MODEL" in found.recovery


def test_doctor_asks_the_model(model: ModelServer, settings: Any) -> None:
    settings.LLM = LlmSettings("openai", "scripted", f"{model.url}/v1", "k")
    model.script = [Turn("ok")]
    found = check_llm()
    assert found.verdict == "ok"
    assert "scripted" in found.what
    assert model.asked[0].body["max_tokens"] == 16


@pytest.mark.parametrize(
    ("turn", "told"),
    [
        (Turn(status=401), "rejects the key"),
        (Turn(status=404), "has no model"),
        (Turn(status=400), "rejects the request"),
    ],
)
def test_doctor_says_what_is_wrong_in_a_sentence(
    model: ModelServer, settings: Any, turn: Turn, told: str
) -> None:
    settings.LLM = LlmSettings("anthropic", "scripted", model.url, "secret-key")
    model.script = [turn]
    found = check_llm()
    assert (found.verdict, told in found.what) == ("bad", True)
    assert found.recovery
    assert "secret-key" not in found.what


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('{"error": {"message": "no room left", "type": "overloaded"}}', "(400): no room left"),
        ('{"error": "no room left"}', "(400): no room left"),
        ("no room left", "(400): no room left"),
        ('{"error": {"message": 5}}', "(400): Error code: 400"),
    ],
)
def test_what_the_models_server_says_is_told_as_it_said_it(
    model: ModelServer, settings: Any, provider: Any, body: str, told: str
) -> None:
    settings.LLM = LlmSettings(provider, "scripted", f"{model.url}/v1", "k")
    model.script = [Turn(status=400, body=body)]
    assert told in check_llm().what


def test_doctor_says_that_no_server_is_there_and_which_key_is_missing(
    model: ModelServer, settings: Any
) -> None:
    settings.LLM = LlmSettings("openai", "m", "http://127.0.0.1:9/v1")
    found = check_llm()
    assert (found.verdict, "cannot be reached" in found.what) == ("bad", True)
    settings.LLM = LlmSettings("openai", "m", f"{model.url}/v1")
    model.script = [Turn(status=401)]
    assert "CONTINUITY_LLM_API_KEY, which is not set" in check_llm().what


def test_doctor_does_not_wait_for_ever(
    model: ModelServer, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runners.llm.probe.PROBE_MS", 500)
    settings.LLM = LlmSettings("openai", "m", f"{model.url}/v1")
    model.script = [Turn("ok", stall_at=0)]
    found = check_llm()
    assert (found.verdict, "did not finish its reply within 500 ms" in found.what) == ("bad", True)


def test_doctor_asks_a_server_on_this_machine_without_a_key(
    model: ModelServer, settings: Any
) -> None:
    settings.LLM = LlmSettings("openai", "llama", f"{model.url}/v1")
    model.script = [Turn("ok", says_usage=False)]
    assert check_llm().verdict == "ok"


@pytest.mark.parametrize(
    ("here", "up", "told"),
    [
        ("new", "", "new at the openai API is set here, but the running stack has none"),
        ("", "old at a", "the running stack has old at a; none is set here"),
        ("new", "old at a", "the running stack has old at a"),
        ("", "", "no model is set"),
        ("", None, "no model is set"),
    ],
)
def test_doctor_says_that_the_stack_that_is_up_has_another_model(
    settings: Any, monkeypatch: pytest.MonkeyPatch, here: str, up: str | None, told: str
) -> None:
    settings.LLM = LlmSettings(model=here)
    info = StackInfo("ready", True, 1, "alive", "http://127.0.0.1:8000", 1.0, model=up)
    monkeypatch.setattr("runs.installation.health.checks.live_info", lambda at: info)
    found = check_llm()
    assert (found.verdict, told in found.what) == ("note", True)
    assert found.recovery


def test_an_address_of_messages_may_end_with_v1(model: ModelServer, settings: Any) -> None:
    settings.LLM = LlmSettings("anthropic", "scripted", f"{model.url}/v1", "k")
    model.script = [Turn("ok")]
    assert check_llm().verdict == "ok"
    assert model.asked[0].path == "/v1/messages"


def test_no_line_of_a_log_stands_between_what_doctor_says(
    model: ModelServer, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("httpx2", "openai", "anthropic"):
        assert settings.LOGGING["loggers"][name] == {"level": "WARNING"}
    settings.LLM = LlmSettings("openai", "scripted", f"{model.url}/v1", "k")
    model.script = [Turn("ok")]
    assert check_llm().verdict == "ok"
    assert not caplog.records


def test_nothing_of_a_model_is_imported_before_an_agent_runs() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", LIGHT],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (ran.stdout.strip(), ran.returncode) == ("[]", 0), ran.stderr[-2000:]
