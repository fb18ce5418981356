"""The settings of the model that agent runs use."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from django.core.exceptions import ImproperlyConfigured
from environ import Env

from runners.llm.base import LlmSettings, Price

_ANTHROPIC_CACHE_SHARES = (0.1, 1.25)  # of the input price: reading from, writing to the cache


def time_zone(env: Env, name: str) -> str:
    """Return an environment variable's value, the name of a time zone; UTC if it is not set.

    Raises:
        ImproperlyConfigured: There is no such time zone.
    """
    zone = str(env.str(name, "")).strip() or "UTC"
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):  # unknown, no name, a folder of names
        raise ImproperlyConfigured(
            f"{name} must be a time zone such as Europe/Berlin, not {zone[:64]!r}."
        ) from None
    return zone


def usd_amount(env: Env, name: str) -> float | None:
    """Return an environment variable's value in US dollars, or None if it is not set.

    Raises:
        ImproperlyConfigured: The value is not an amount.
    """
    text: str = env.str(name, "").strip()
    return _amount(name, text) if text else None


def max_cost_usd(env: Env, name: str, model: LlmSettings) -> float | None:
    """Return the largest allowed cost of a run in US dollars, or None if it is not limited.

    Raises:
        ImproperlyConfigured: The value is not an amount, or the model's price is not set.
    """
    limit = usd_amount(env, name)
    if limit is not None and model.model and model.price is None:
        raise ImproperlyConfigured(
            f"{name} needs CONTINUITY_LLM_PRICE, without which costs are unknown. Set it too."
        )
    return limit


def _amount(name: str, text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text, re.ASCII):
        raise ImproperlyConfigured(f"{name} must be an amount such as 2.50, not {text[:64]!r}.")
    return float(text)


def llm_settings(
    *, base_url: str, price: str, cache_price: str = "", api_key: str = "", **others: Any
) -> LlmSettings:
    """Return the settings of the model, validated.

    Args:
        base_url: The address of the provider's API; "" for the provider's own.
        price: US dollars per million input and output tokens, such as "1.25/10"; "" if unknown.
        cache_price: The same of input tokens that the server reads from its prompt cache, and that
            it writes to it, such as "0.3/3.75"; "" for a tenth and five quarters of the input price
            with Anthropic, the input price with others.
        api_key: The provider's API key.
        others: Further fields of LlmSettings.

    Raises:
        ImproperlyConfigured: The address is not an http(s) URL or has credentials or a query; the
            a price is malformed; the key cannot be sent in a header.
    """
    if not re.fullmatch(r"[!-~]*", api_key):  # it is sent in a header
        raise ImproperlyConfigured(
            "CONTINUITY_LLM_API_KEY has spaces or characters that keys do not have: copy it again."
        )
    parts = urlsplit(base_url)
    if base_url and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise ImproperlyConfigured("CONTINUITY_LLM_BASE_URL must be an http:// or https:// URL.")
    if parts.username or parts.password or parts.query:
        raise ImproperlyConfigured(
            "CONTINUITY_LLM_BASE_URL must not have credentials or a query; put the key into"
            " CONTINUITY_LLM_API_KEY."
        )
    return LlmSettings(
        base_url=base_url.rstrip("/"),
        price=_price(price, cache_price, others.get("provider", "")),
        api_key=api_key,
        **others,
    )


def _price(price: str, cache_price: str, provider: str) -> Price | None:
    costs = _amounts("CONTINUITY_LLM_PRICE", price, "input/output: 1.25/10")
    cache = _amounts("CONTINUITY_LLM_CACHE_PRICE", cache_price, "read/written: 0.3/3.75")
    if cache and not costs:
        raise ImproperlyConfigured("CONTINUITY_LLM_CACHE_PRICE needs CONTINUITY_LLM_PRICE.")
    if costs and not cache and provider == "anthropic":
        cache = [costs[0] * share for share in _ANTHROPIC_CACHE_SHARES]
    return Price(*costs, *cache) if costs else None


def _amounts(name: str, text: str, example: str) -> list[float]:
    """Return the two amounts of a setting, or [] if it is empty."""
    if not text:
        return []
    if "/" not in text:
        raise ImproperlyConfigured(f"{name} must be two amounts per million tokens, {example}.")
    return [_amount(name, amount) for amount in text.split("/", 1)]
