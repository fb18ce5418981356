"""Bytes that a paired browser exchanges with this server during a browser action, by signed
addresses that expire: the result of an action, and the files that a page is given.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import IO, Any

from django.conf import settings

from artifacts.storage.blobs import blob_storage, open_blob, write_blob
from artifacts.storage.staging import (
    RESULT_PREFIX,
    UPLOAD_PATH,
    create_result_ticket,
    staging_name,
)
from decisions.foundation.errors import ArtifactNotFound, InvalidInput
from decisions.foundation.infra.clock import to_ms
from decisions.foundation.infra.ids import new_id
from decisions.foundation.security.keys import mac, mac_matches

FILE_PATH = "/api/v1/artifacts/file/"
TIME_TO_SEND = timedelta(minutes=15)
MAX_BYTES = 25 * 1024 * 1024
_PURPOSE = "file for a page"


@dataclass(frozen=True, slots=True)
class ResultUpload:
    """Where a browser sends the result of an action; an address without PUBLIC_URL is a path."""

    upload_id: str
    url: str
    expires_at: datetime

    def as_dict(self) -> dict[str, Any]:
        """Return what the browser gets."""
        return {
            "url": self.url,
            "method": "PUT",
            "maxBytes": MAX_BYTES,
            "expiresAt": to_ms(self.expires_at),
        }


def open_result_upload() -> ResultUpload:
    """Return a new address for the result of an action; nothing is written."""
    upload_id, expires_at = new_id(RESULT_PREFIX), datetime.now(UTC) + TIME_TO_SEND
    ticket = create_result_ticket(upload_id, MAX_BYTES, expires_at)
    return ResultUpload(upload_id, settings.PUBLIC_URL + UPLOAD_PATH + ticket, expires_at)


def take_result(upload: ResultUpload, *, size_bytes: int, sha256: str) -> bytes:
    """Return the bytes that were sent, and delete them from the staging area. Blocks.

    Raises:
        ArtifactNotFound: Nothing was sent.
        InvalidInput: The bytes do not have this size and SHA-256.
    """
    name = staging_name(upload.upload_id)
    try:
        staged = blob_storage().open_upload(name)
    except FileNotFoundError:
        raise ArtifactNotFound("Nothing was sent to the upload.", next_actions=[]) from None
    try:
        data = bytes(staged.read(MAX_BYTES + 1))
    finally:
        blob_storage().close_upload(staged)
        blob_storage().delete(name)
    if len(data) != size_bytes or hashlib.sha256(data).hexdigest() != sha256:
        raise InvalidInput("The bytes do not have the size and sha256 that the browser named.")
    return data


def share_file(data: bytes) -> str:
    """Store bytes until garbage collection, and return the address to download them. Blocks."""
    expires = int((datetime.now(UTC) + TIME_TO_SEND).timestamp())
    claims = f"{write_blob(data)}.{len(data)}.{expires}"
    return settings.PUBLIC_URL + FILE_PATH + f"{claims}.{mac(_PURPOSE, claims.encode())}"


def open_shared_file(ticket: str) -> tuple[int, IO[Any]]:
    """Return the size and the opened bytes of a shared file.

    Raises:
        ArtifactNotFound: The ticket is not valid, or has expired.
    """
    refused = ArtifactNotFound(
        "There is no file at this address, or it has expired.", next_actions=[]
    )
    claims, _, proof = ticket.rpartition(".")
    if not claims.isascii() or not mac_matches(_PURPOSE, claims.encode(), proof):
        raise refused
    sha256, size_bytes, expires = claims.split(".")
    if int(expires) <= datetime.now(UTC).timestamp():
        raise refused
    file = open_blob(sha256, size_bytes=int(size_bytes))
    if file is None:
        raise refused
    return int(size_bytes), file
