"""Verification of S3 requests as S3 does it, in front of a server that does not: AWS Signature
Version 4 in headers and in presigned URLs, and the checksum of the body.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

ALGORITHM = "AWS4-HMAC-SHA256"
MAX_EXPIRES_S = 7 * 24 * 3600
_AUTHORIZATION = re.compile(
    rf"{ALGORITHM} Credential=([^,]+), *SignedHeaders=([^,]+), *Signature=([0-9a-f]+)"
)
Environ = dict[str, Any]


class Refused(Exception):
    """The request is refused; the message is S3's error code."""


class SignatureCheck:
    """A WSGI application that passes requests on only if they are signed with a known key.

    Attributes:
        now: the server's clock; a test sets it.
        refusals: the error codes of refused requests, in order.
    """

    def __init__(self, application: Any, keys: Mapping[str, str]) -> None:
        self._application, self._keys = application, keys
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)
        self.refusals: list[str] = []

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        """Answer 403 or 400, or pass the request on."""
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        try:
            self._check(environ, body)
        except Refused as refused:
            code = str(refused)
            self.refusals.append(code)
            status = "400 Bad Request" if code == "BadDigest" else "403 Forbidden"
            start_response(status, [("Content-Type", "application/xml")])
            return [f"<Error><Code>{code}</Code></Error>".encode()]
        environ["wsgi.input"] = BytesIO(body)
        answer: Iterable[bytes] = self._application(environ, start_response)
        return answer

    def _check(self, environ: Environ, body: bytes) -> None:
        query = parse_qsl(environ["QUERY_STRING"], keep_blank_values=True)
        given, headers = dict(query), _headers_of(environ)
        if len(given) != len(query):
            raise Refused("AuthorizationQueryParametersError")
        if "X-Amz-Signature" in given:
            signature = given.pop("X-Amz-Signature")
            credential, signed = given["X-Amz-Credential"], given["X-Amz-SignedHeaders"]
            self._check_time(given["X-Amz-Date"], int(given["X-Amz-Expires"]))
            sent_at, payload = given["X-Amz-Date"], "UNSIGNED-PAYLOAD"
        else:
            credential, signed, signature = _authorization(headers)
            sent_at, payload = headers["x-amz-date"], headers["x-amz-content-sha256"]
            if payload not in ("UNSIGNED-PAYLOAD", hashlib.sha256(body).hexdigest()):
                raise Refused("XAmzContentSHA256Mismatch")
        names = signed.split(";")
        if "host" not in names or any(
            name.startswith("x-amz-") and name not in names for name in headers
        ):
            raise Refused("AccessDenied")  # headers that are not signed
        path = quote(unquote(environ["REQUEST_URI"].partition("?")[0]), safe="/~")
        canonical = "\n".join(
            (
                environ["REQUEST_METHOD"],
                path,
                "&".join(
                    sorted(f"{quote(k, safe='~')}={quote(v, safe='~')}" for k, v in given.items())
                ),
                *(f"{name}:{' '.join(headers.get(name, '').split())}" for name in names),
                "",
                signed,
                payload,
            )
        )
        if not hmac.compare_digest(self._sign(credential, sent_at, canonical), signature):
            raise Refused("SignatureDoesNotMatch")
        checksum = headers.get("x-amz-checksum-sha256")
        if checksum and base64.b64decode(checksum) != hashlib.sha256(body).digest():
            raise Refused("BadDigest")

    def _check_time(self, sent_at: str, expires_s: int) -> None:
        start = datetime.strptime(sent_at, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if not 0 < expires_s <= MAX_EXPIRES_S:
            raise Refused("AuthorizationQueryParametersError")
        if not -timedelta(minutes=15) <= self.now() - start < timedelta(seconds=expires_s):
            raise Refused("AccessDenied")  # the request has expired

    def _sign(self, credential: str, sent_at: str, canonical: str) -> str:
        key_id, *scope = credential.split("/")
        if key_id not in self._keys:
            raise Refused("InvalidAccessKeyId")
        if len(scope) != 4 or scope[0] != sent_at[:8] or scope[2:] != ["s3", "aws4_request"]:
            raise Refused("AuthorizationQueryParametersError")
        key = f"AWS4{self._keys[key_id]}".encode()
        for part in scope:
            key = hmac.digest(key, part.encode(), "sha256")
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = "\n".join((ALGORITHM, sent_at, "/".join(scope), digest))
        return hmac.digest(key, text.encode(), "sha256").hex()


def _headers_of(environ: Environ) -> dict[str, str]:
    """Return a request's headers by lower-case name."""
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): str(value)
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if name in environ:
            headers[name.replace("_", "-").lower()] = str(environ[name])
    return headers


def _authorization(headers: Mapping[str, str]) -> tuple[str, str, str]:
    found = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
    if found is None:
        raise Refused("AccessDenied")
    return found[1], found[2], found[3]
