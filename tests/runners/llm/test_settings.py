"""Settings of the model for agent runs, and what `manage.py doctor` reports about it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from environ import Env

from config.llm import llm_settings, max_cost_usd, time_zone, usd_amount
from runners.llm.base import LlmSettings, Price
from runs.operations.health.checks import check_llm
from runs.operations.home.state import StackInfo
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Turn

IMPORT_EVERYTHING = """
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
def test_an_invalid_base_url_is_refused_without_being_repeated(address: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="CONTINUITY_LLM_BASE_URL") as refused:
        llm_settings(base_url=address, price="")
    assert "pass" not in str(refused.value)


@pytest.mark.parametrize("key", ["sk-secret…", "sk secret", "sk-secret\x00", "ключ-secret"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_repeated(key: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="CONTINUITY_LLM_API_KEY") as refused:
        llm_settings(base_url="", price="", api_key=key)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("price", ["1.25", "a/b", "1/", "-1/2", "1/2/3", "1e3/2"])
def test_an_invalid_price_is_refused(price: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="CONTINUITY_LLM_PRICE"):
        llm_settings(base_url="", price=price)


def test_a_price_is_an_input_and_an_output_amount_per_million_tokens() -> None:
    expected = llm_settings(base_url="https://host/v1/", price="1.25/10", model="m")
    assert expected == LlmSettings(model="m", base_url="https://host/v1", price=Price(1.25, 10.0))
    assert expected.price is not None
    assert expected.price.of(1_000_000, 100_000) == 2.25


def test_cached_tokens_have_prices_of_their_own() -> None:
    given = llm_settings(base_url="", price="3/15", cache_price="0.5/4").price
    assert given == Price(3, 15, 0.5, 4)
    of_anthropic = llm_settings(base_url="", price="3/15", provider="anthropic").price
    assert of_anthropic is not None
    assert (of_anthropic.cache_read_usd, of_anthropic.cache_write_usd) == pytest.approx((0.3, 3.75))
    other = llm_settings(base_url="", price="3/15").price
    assert other is not None
    assert other.of(1_000_000, 0, cache_read=1_000_000) == 3


@pytest.mark.parametrize(
    ("price", "cache_price"), [("", "0.5/4"), ("3/15", "0.5"), ("3/15", "a/b")]
)
def test_an_invalid_cache_price_is_refused(price: str, cache_price: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="CONTINUITY_LLM_CACHE_PRICE"):
        llm_settings(base_url="", price=price, cache_price=cache_price)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../etc/passwd", "Europe", "+02:00"])
def test_an_unknown_time_zone_is_refused(monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    assert time_zone(Env(), "CONTINUITY_OF_A_TEST") == "UTC"
    monkeypatch.setenv("CONTINUITY_OF_A_TEST", zone)
    with pytest.raises(ImproperlyConfigured, match="Europe/Berlin"):
        time_zone(Env(), "CONTINUITY_OF_A_TEST")


def test_a_cost_limit_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    assert usd_amount(Env(), "CONTINUITY_OF_A_TEST") is None
    monkeypatch.setenv("CONTINUITY_OF_A_TEST", "2.50")
    assert usd_amount(Env(), "CONTINUITY_OF_A_TEST") == 2.5
    monkeypatch.setenv("CONTINUITY_OF_A_TEST", "two")
    with pytest.raises(ImproperlyConfigured, match="CONTINUITY_OF_A_TEST"):
        usd_amount(Env(), "CONTINUITY_OF_A_TEST")


def test_a_cost_limit_requires_a_price_when_a_model_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTINUITY_OF_A_TEST", "2.50")
    assert max_cost_usd(Env(), "CONTINUITY_OF_A_TEST", LlmSettings()) == 2.5  # no model is set
    priced = LlmSettings(model="m", price=Price(1, 2))
    assert max_cost_usd(Env(), "CONTINUITY_OF_A_TEST", priced) == 2.5
    with pytest.raises(ImproperlyConfigured, match="CONTINUITY_LLM_PRICE"):
        max_cost_usd(Env(), "CONTINUITY_OF_A_TEST", LlmSettings(model="m"))


def test_doctor_only_notes_that_no_model_is_set(settings: Any) -> None:
    settings.LLM = LlmSettings()
    finding = check_llm()
    assert (finding.verdict, finding.what) == ("note", "no model is set; only agents need one")
    assert "CONTINUITY_LLM_MODEL" in finding.recovery


def test_doctor_sends_the_model_a_short_request(model: ModelServer, settings: Any) -> None:
    settings.LLM = LlmSettings("openai", "scripted", f"{model.url}/v1", "k")
    model.script = [Turn("ok")]
    finding = check_llm()
    assert finding.verdict == "ok"
    assert "scripted" in finding.what
    assert model.requests[0].body["max_tokens"] == 16


def test_pictures_are_for_the_providers_own_servers_if_not_set() -> None:
    assert LlmSettings(model="m").can_see
    assert not LlmSettings(model="m", base_url="http://127.0.0.1:1/v1").can_see
    assert LlmSettings(model="m", base_url="http://127.0.0.1:1/v1", vision="on").can_see
    assert not LlmSettings(model="m", vision="off").can_see


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("turn", "verdict", "expected"),
    [
        (Turn("Red."), "ok", "shown a red picture, it says 'Red.'"),
        (Turn("I see none"), "bad", "it says 'I see none'"),
        (Turn(status=400, body='{"error": {"message": "no images"}}'), "bad", "no images"),
    ],
)
def test_doctor_shows_a_model_with_vision_a_picture(
    model: ModelServer, settings: Any, provider: Any, turn: Turn, verdict: str, expected: str
) -> None:
    settings.LLM = LlmSettings(provider, "scripted", f"{model.url}/v1", "k", vision="on")
    model.script = [Turn("ok"), turn]
    finding = check_llm()
    assert (finding.verdict, expected in finding.what) == (verdict, True), finding.what
    assert bool(finding.recovery) == (verdict != "ok")
    assert "iVBORw0KGgo" in str(model.requests[1].body["messages"])  # a PNG


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        (Turn(status=401), "rejects the key"),
        (Turn(status=404), "has no model"),
        (Turn(status=400), "rejects the request"),
    ],
)
def test_doctor_reports_a_failing_status_without_the_key(
    model: ModelServer, settings: Any, turn: Turn, expected: str
) -> None:
    settings.LLM = LlmSettings("anthropic", "scripted", model.url, "secret-key")
    model.script = [turn]
    finding = check_llm()
    assert (finding.verdict, expected in finding.what) == ("bad", True)
    assert finding.recovery
    assert "secret-key" not in finding.what


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"error": {"message": "no room left", "type": "overloaded"}}', "(400): no room left"),
        ('{"error": "no room left"}', "(400): no room left"),
        ("no room left", "(400): no room left"),
        ('{"error": {"message": 5}}', "(400): Error code: 400"),
    ],
)
def test_doctor_repeats_the_model_servers_own_error_message(
    model: ModelServer, settings: Any, provider: Any, body: str, expected: str
) -> None:
    settings.LLM = LlmSettings(provider, "scripted", f"{model.url}/v1", "k")
    model.script = [Turn(status=400, body=body)]
    assert expected in check_llm().what


def test_doctor_reports_an_unreachable_server_and_a_missing_key(
    model: ModelServer, settings: Any
) -> None:
    settings.LLM = LlmSettings("openai", "m", "http://127.0.0.1:9/v1")
    finding = check_llm()
    assert (finding.verdict, "cannot be reached" in finding.what) == ("bad", True)
    settings.LLM = LlmSettings("openai", "m", f"{model.url}/v1")
    model.script = [Turn(status=401)]
    assert "CONTINUITY_LLM_API_KEY, which is not set" in check_llm().what


def test_doctor_gives_up_on_a_stalled_model(
    model: ModelServer, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runners.llm.probe.PROBE_MS", 500)
    settings.LLM = LlmSettings("openai", "m", f"{model.url}/v1")
    model.script = [Turn("ok", stall_at=0)]
    finding = check_llm()
    assert (finding.verdict, "did not finish its reply within 500 ms" in finding.what) == (
        "bad",
        True,
    )


def test_doctor_needs_no_key_for_a_local_server(model: ModelServer, settings: Any) -> None:
    settings.LLM = LlmSettings("openai", "llama", f"{model.url}/v1")
    model.script = [Turn("ok", reports_usage=False)]
    assert check_llm().verdict == "ok"


@pytest.mark.parametrize(
    ("configured", "running", "expected"),
    [
        ("new", "", "new at the openai API is set here, but the running stack has none"),
        ("", "old at a", "the running stack has old at a; none is set here"),
        ("new", "old at a", "the running stack has old at a"),
        ("", "", "no model is set"),
        ("", None, "no model is set"),
    ],
)
def test_doctor_reports_that_the_running_stack_has_another_model(
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    configured: str,
    running: str | None,
    expected: str,
) -> None:
    settings.LLM = LlmSettings(model=configured)
    info = StackInfo("running", True, 1, "alive", "http://127.0.0.1:8000", 1.0, model=running)
    monkeypatch.setattr("runs.operations.health.checks.live_info", lambda at: info)
    finding = check_llm()
    assert (finding.verdict, expected in finding.what) == ("note", True)
    assert finding.recovery


def test_an_anthropic_base_url_may_end_with_v1(model: ModelServer, settings: Any) -> None:
    settings.LLM = LlmSettings("anthropic", "scripted", f"{model.url}/v1", "k")
    model.script = [Turn("ok")]
    assert check_llm().verdict == "ok"
    assert model.requests[0].path == "/v1/messages"


def test_doctor_writes_no_log_lines_of_the_client_libraries(
    model: ModelServer, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("httpx2", "openai", "anthropic"):
        assert settings.LOGGING["loggers"][name] == {"level": "WARNING"}
    settings.LLM = LlmSettings("openai", "scripted", f"{model.url}/v1", "k")
    model.script = [Turn("ok")]
    assert check_llm().verdict == "ok"
    assert not caplog.records


@pytest.mark.slow
def test_no_model_library_is_imported_before_an_agent_runs() -> None:
    completed = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_EVERYTHING],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (completed.stdout.strip(), completed.returncode) == ("[]", 0), completed.stderr[-2000:]
