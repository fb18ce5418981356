"""Sealing, keyed digests and MACs, and what a change of keys means for them."""

from __future__ import annotations

import hmac

import pytest
from django.test import override_settings

from decisions.security.keys import mac, mac_matches, macs, seal, unseal

OLD, NEW = "o" * 40, "n" * 40


def test_what_was_sealed_opens_and_tells_nothing() -> None:
    sealed = seal(b"password")
    assert b"password" not in sealed
    assert seal(b"password") != sealed
    assert unseal(sealed) == b"password"


@pytest.mark.parametrize("damage", [b"", b"x", b"gAAAA", bytes(200)])
def test_what_was_altered_or_never_sealed_does_not_open(damage: bytes) -> None:
    with pytest.raises(ValueError, match="modified"):
        unseal(damage)
    sealed = bytearray(seal(b"x"))
    sealed[20] ^= 1
    with pytest.raises(ValueError, match="modified"):
        unseal(bytes(sealed))


def test_an_older_key_still_opens_and_checks_but_no_longer_seals() -> None:
    with override_settings(CONTINUITY_SECRET_KEYS=[OLD]):
        sealed, made = seal(b"x"), mac("audit", b"m")
    with override_settings(CONTINUITY_SECRET_KEYS=[NEW, OLD]):
        assert unseal(sealed) == b"x"
        assert mac_matches("audit", b"m", made)
        assert mac("audit", b"m") != made
        assert macs("audit", b"m") == (mac("audit", b"m"), made)
    with override_settings(CONTINUITY_SECRET_KEYS=[NEW]):
        assert not mac_matches("audit", b"m", made)
        with pytest.raises(ValueError, match="modified"):
            unseal(sealed)


def test_a_mac_is_for_its_purpose_alone() -> None:
    assert not mac_matches("token", b"m", mac("audit", b"m"))


@pytest.mark.parametrize("given", ["", "0" * 64, "漢" * 64, "x" * 10_000])
def test_anything_else_is_no_mac(given: str) -> None:
    assert not mac_matches("audit", b"m", given)


def test_a_mac_is_hmac_sha256_under_the_key_of_its_purpose() -> None:
    with override_settings(CONTINUITY_SECRET_KEYS=[NEW]):
        key = hmac.digest(NEW.encode(), b"audit", "sha256")
        assert mac("audit", b"m" * 200) == hmac.digest(key, b"m" * 200, "sha256").hex()
