"""Sealing, keyed digests and MACs, and their behaviour after a key rotation."""

from __future__ import annotations

import hmac

import pytest
from django.test import override_settings

from decisions.foundation.security.keys import mac, mac_matches, macs, seal, unseal

OLD, NEW = "o" * 40, "n" * 40


def seal_one(plain: bytes = b"x", purpose: str = "table.column", bound_to: str = "row") -> bytes:
    return seal(plain, purpose=purpose, bound_to=bound_to)


def unseal_one(sealed: bytes, purpose: str = "table.column", bound_to: str = "row") -> bytes:
    return unseal(sealed, purpose=purpose, bound_to=bound_to)


def test_a_sealed_value_can_be_unsealed_and_hides_its_content() -> None:
    sealed = seal_one(b"password")
    assert b"password" not in sealed
    assert seal_one(b"password") != sealed
    assert unseal_one(sealed) == b"password"


@pytest.mark.parametrize("data", [b"", b"x", b"v2:", b"v2:gAAAA", bytes(200)])
def test_altered_or_never_sealed_data_cannot_be_unsealed(data: bytes) -> None:
    with pytest.raises(ValueError, match="modified"):
        unseal_one(data)
    sealed = seal_one()
    for index in range(len(sealed)):
        altered = bytearray(sealed)
        altered[index] ^= 1
        with pytest.raises(ValueError, match="modified"):
            unseal_one(bytes(altered))


@pytest.mark.parametrize(("purpose", "bound_to"), [("table.other", "row"), ("table.column", "r")])
def test_a_value_of_another_purpose_or_row_cannot_be_unsealed(purpose: str, bound_to: str) -> None:
    with pytest.raises(ValueError, match="another purpose or row"):
        unseal_one(seal_one(), purpose, bound_to)


def test_an_older_key_unseals_and_verifies_but_does_not_seal() -> None:
    with override_settings(CONTINUITY_SECRET_KEYS=[OLD]):
        sealed, old_mac = seal_one(), mac("audit", b"m")
    with override_settings(CONTINUITY_SECRET_KEYS=[NEW, OLD]):
        assert unseal_one(sealed) == b"x"
        assert mac_matches("audit", b"m", old_mac)
        assert mac("audit", b"m") != old_mac
        assert macs("audit", b"m") == (mac("audit", b"m"), old_mac)
    with override_settings(CONTINUITY_SECRET_KEYS=[NEW]):
        assert not mac_matches("audit", b"m", old_mac)
        with pytest.raises(ValueError, match="modified"):
            unseal_one(sealed)


def test_a_mac_is_valid_only_for_its_purpose() -> None:
    assert not mac_matches("token", b"m", mac("audit", b"m"))


@pytest.mark.parametrize("text", ["", "0" * 64, "漢" * 64, "x" * 10_000])
def test_any_other_text_is_not_a_valid_mac(text: str) -> None:
    assert not mac_matches("audit", b"m", text)


def test_a_mac_is_hmac_sha256_under_the_key_of_its_purpose() -> None:
    with override_settings(CONTINUITY_SECRET_KEYS=[NEW]):
        key = hmac.digest(NEW.encode(), b"audit", "sha256")
        assert mac("audit", b"m" * 200) == hmac.digest(key, b"m" * 200, "sha256").hex()
