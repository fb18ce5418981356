"""Webhook signatures follow the Standard Webhooks specification."""

from __future__ import annotations

import base64

from runs.webhooks.signing import headers, new_secret, signature

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE, AT, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'


def test_a_known_message_has_the_known_signature() -> None:
    known = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert signature(SECRET, message_id=MESSAGE, timestamp=AT, body=BODY) == known


def test_every_part_is_signed() -> None:
    signed = {
        signature(secret, message_id=message, timestamp=at, body=body)
        for secret, message, at, body in (
            (SECRET, MESSAGE, AT, BODY),
            (new_secret(), MESSAGE, AT, BODY),
            (SECRET, "msg_other", AT, BODY),
            (SECRET, MESSAGE, AT + 1, BODY),
            (SECRET, MESSAGE, AT, BODY + b" "),
        )
    }
    assert len(signed) == 5


def test_headers_name_the_message_and_the_time() -> None:
    sent = headers(SECRET, message_id=MESSAGE, timestamp=AT, body=BODY)
    assert (sent["webhook-id"], sent["webhook-timestamp"]) == (MESSAGE, str(AT))
    assert sent["webhook-signature"].startswith("v1,")


def test_secrets_are_random_and_long() -> None:
    secret, other = new_secret(), new_secret()
    assert secret != other
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
