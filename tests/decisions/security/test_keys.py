"""Sealing, keyed digests and MACs, and their behaviour after a key rotation."""

from __future__ import annotations

import hmac

import pytest
from django.test import override_settings

from decisions.security.keys import mac, mac_matches, macs, seal, unseal

OLD, NEW = "o" * 40, "n" * 40


def test_a_sealed_value_can_be_unsealed_and_hides_its_content() -> None:
    sealed = seal(b"password")
    assert b"password" not in sealed
    assert seal(b"password") != sealed
    assert unseal(sealed) == b"password"


@pytest.mark.parametrize("data", [b"", b"x", b"gAAAA", bytes(200)])
def test_altered_or_never_sealed_data_cannot_be_unsealed(data: bytes) -> None:
    with pytest.raises(ValueError, match="modified"):
        unseal(data)
    sealed = bytearray(seal(b"x"))
    sealed[20] ^= 1
    with pytest.raises(ValueError, match="modified"):
        unseal(bytes(sealed))


def test_an_older_key_unseals_and_verifies_but_does_not_seal() -> None:
    with override_settings(CONTINUITY_SECRET_KEYS=[OLD]):
        sealed, old_mac = seal(b"x"), mac("audit", b"m")
    with override_settings(CONTINUITY_SECRET_KEYS=[NEW, OLD]):
        assert unseal(sealed) == b"x"
        assert mac_matches("audit", b"m", old_mac)
        assert mac("audit", b"m") != old_mac
        assert macs("audit", b"m") == (mac("audit", b"m"), old_mac)
    with override_settings(CONTINUITY_SECRET_KEYS=[NEW]):
        assert not mac_matches("audit", b"m", old_mac)
        with pytest.raises(ValueError, match="modified"):
            unseal(sealed)


def test_a_mac_is_valid_only_for_its_purpose() -> None:
    assert not mac_matches("token", b"m", mac("audit", b"m"))


@pytest.mark.parametrize("text", ["", "0" * 64, "漢" * 64, "x" * 10_000])
def test_any_other_text_is_not_a_valid_mac(text: str) -> None:
    assert not mac_matches("audit", b"m", text)


def test_a_mac_is_hmac_sha256_under_the_key_of_its_purpose() -> None:
    with override_settings(CONTINUITY_SECRET_KEYS=[NEW]):
        key = hmac.digest(NEW.encode(), b"audit", "sha256")
        assert mac("audit", b"m" * 200) == hmac.digest(key, b"m" * 200, "sha256").hex()
