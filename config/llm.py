"""What the settings say of the model of agent runs."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from environ import Env

from runners.llm.base import LlmSettings, Price


def usd_amount(env: Env, name: str) -> float | None:
    """Return the amount that an environment variable is, None where it is not set.

    Raises:
        ImproperlyConfigured: It is no amount.
    """
    text: str = env.str(name, "").strip()
    return _amount(name, text) if text else None


def max_cost_usd(env: Env, name: str, model: LlmSettings) -> float | None:
    """Return the most that a run may cost, None where there is no limit.

    Raises:
        ImproperlyConfigured: It is no amount, or nobody could tell when it is reached.
    """
    most = usd_amount(env, name)
    if most is not None and model.model and model.price is None:
        raise ImproperlyConfigured(
            f"{name} is set, but not CONTINUITY_LLM_PRICE: without it no cost is known."
        )
    return most


def _amount(name: str, text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text, re.ASCII):
        raise ImproperlyConfigured(f"{name} has to be an amount such as 2.50, not {text[:64]!r}.")
    return float(text)


def llm_settings(*, base_url: str, price: str, api_key: str = "", **told: Any) -> LlmSettings:
    """Return what is said of the model of agent runs.

    Raises:
        ImproperlyConfigured: The address is none, or has credentials in it; the price is none; the
            key cannot be sent.
    """
    if not re.fullmatch(r"[!-~]*", api_key):  # a header's value, and none with spaces in it
        raise ImproperlyConfigured(
            "CONTINUITY_LLM_API_KEY has spaces or signs in it that no key has: copy it once more."
        )
    parts = urlsplit(base_url)
    if base_url and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise ImproperlyConfigured("CONTINUITY_LLM_BASE_URL has to be an http(s) address.")
    if parts.username or parts.password or parts.query:
        raise ImproperlyConfigured(
            "CONTINUITY_LLM_BASE_URL holds more than an address; a key belongs into"
            " CONTINUITY_LLM_API_KEY."
        )
    given, slash, made = price.partition("/")
    if price and not slash:
        raise ImproperlyConfigured(
            "CONTINUITY_LLM_PRICE has to be two amounts for a million tokens, in/out: 1.25/10."
        )
    costs = [_amount("CONTINUITY_LLM_PRICE", one) for one in (given, made)] if price else []
    return LlmSettings(
        base_url=base_url.rstrip("/"),
        price=Price(*costs) if costs else None,
        api_key=api_key,
        **told,
    )
