"""Artifacts that callers bring: announced, sent straight to the storage, valid once they were read
and found to be what was announced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Protocol

from django.conf import settings
from django.core.files.base import File
from django.db import transaction

from artifacts.models import Artifact, ArtifactUpload
from artifacts.selectors import describe_artifact
from artifacts.storage.blobs import blob_path, blob_storage
from artifacts.storage.staging import Ticket, create_ticket, staging_name
from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import admit_call, tool_call_request, use_approval
from decisions.errors import ArtifactExpired, ArtifactNotFound, Conflict, InvalidInput
from decisions.identity.principals import Principal
from decisions.infra.batches import BATCH_SIZE, run_in_batches
from decisions.infra.clock import to_ms
from decisions.infra.ids import new_id
from decisions.infra.threads import in_long_thread, in_thread, run_to_completion
from decisions.models import Confirmation
from decisions.validation.storable import storable_text

KIND = "upload"
OPEN_MAX = 100  # uploads of a workspace that are announced and not complete
TIME_TO_SEND = timedelta(hours=1)
PIECE_BYTES = 1 << 20


class TooManyUploads(Conflict):
    """The workspace has announced more than it sends."""

    retryable = True
    recovery = "Complete the uploads that are open; those that are not end after an hour."


class NothingUploaded(Conflict):
    """The bytes are not there yet."""

    retryable = True
    recovery = "Send the bytes by PUT to the url of the upload, then complete it."


def start_upload(
    *, principal: Principal, name: str, mime_type: str, size_bytes: int, sha256: str, door: str
) -> dict[str, Any]:
    """Announce bytes and return {uploadId, method, url, headers, expiresAt}: where to send them.

    Args:
        door: the address of our own door for bytes, which ends with a slash; used where the storage
            has none.

    Raises:
        InvalidInput, TooManyUploads: Larger than this installation takes; OPEN_MAX are open.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    principal.require("artifacts:write")
    most = settings.UPLOAD_MAX_BYTES
    if size_bytes > most:
        raise InvalidInput(f"sizeBytes: at most {most} are taken.", details={"maxBytes": most})
    now = datetime.now(UTC)
    place = {"tenant_id": principal.tenant_id, "workspace_id": principal.workspace_id}
    upload = ArtifactUpload(
        id=new_id("upl_"),
        **place,
        principal_id=principal.id,
        name=storable_text(name)[:255],
        mime_type=mime_type,
        sha256=sha256,
        size_bytes=size_bytes,
        created_at=now,
        expires_at=now + TIME_TO_SEND,
    )
    opened = ArtifactUpload.objects.filter(
        workspace_id=principal.workspace_id, expires_at__gt=now, artifact_id__isnull=True
    )
    facts = {"sizeBytes": size_bytes, "sha256": sha256, "mimeType": mime_type}
    approval = admit_call(
        tool_call_request(principal, "start_artifact_upload", {"name": name, **facts})
    )
    with transaction.atomic():
        use_approval(approval)
        if len(opened.values("id")[:OPEN_MAX]) >= OPEN_MAX:
            raise TooManyUploads(f"{OPEN_MAX} uploads of this workspace are open.")
        upload.save(force_insert=True)
        record(_deed("artifact.upload_started", principal, upload, facts))
    url, headers = _where_to_send(upload, door)
    return {
        "uploadId": upload.id,
        "method": "PUT",
        "url": url,
        "headers": headers,
        "expiresAt": to_ms(upload.expires_at),
    }


def _where_to_send(upload: ArtifactUpload, door: str) -> tuple[str, dict[str, str]]:
    sign = getattr(blob_storage(), "presign_put", None)
    if sign is None:
        length = str(upload.size_bytes)
        return door + create_ticket(upload), {
            "Content-Type": upload.mime_type,
            "Content-Length": length,
        }
    url, headers = sign(
        staging_name(upload.id),
        mime_type=upload.mime_type,
        size_bytes=upload.size_bytes,
        sha256=upload.sha256,
        expires_s=int(TIME_TO_SEND.total_seconds()),
    )
    return url, headers


class Readable(Protocol):
    """A body as it comes in."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""


class _Sent(File):  # type: ignore[type-arg]
    """A body on its way into the storage, as long as it was announced to be."""

    def __init__(self, body: Readable, size_bytes: int) -> None:
        super().__init__(None)
        self._body = body
        self._announced = size_bytes

    def chunks(self, chunk_size: int | None = None) -> Iterator[bytes]:
        """Yield the body, and refuse one of another length."""
        left = self._announced
        for piece in iter(partial(self._body.read, PIECE_BYTES), b""):
            left -= len(piece)
            if left < 0:
                break
            yield piece
        if left:
            raise InvalidInput(f"The body has to have {self._announced} bytes, as announced.")


async def receive_upload(*, ticket: Ticket | None, body: Readable, mime_type: str) -> None:
    """Take the bytes of an upload; sent again, they replace what was sent before.

    Raises:
        ArtifactNotFound: No such ticket, or its time is over.
        Conflict: The upload is complete.
        InvalidInput: Another length or another type than announced; nothing is kept.
    """
    upload = await in_thread(_awaited, ticket, mime_type)
    sent = _Sent(body, upload.size_bytes)
    await in_long_thread(blob_storage().save, staging_name(upload.id), sent)


def _awaited(ticket: Ticket | None, mime_type: str) -> ArtifactUpload:
    upload = ticket and ArtifactUpload.objects.filter(id=ticket.upload_id).first()
    if not upload:
        told = "There is no upload at this address, or its time is over."
        raise ArtifactNotFound(told, next_actions=[])
    if upload.artifact_id is not None:
        raise Conflict(f"The upload {upload.id} is complete.")
    if mime_type != upload.mime_type:
        raise InvalidInput(f"Content-Type: it has to be {upload.mime_type}, as announced.")
    return upload


async def complete_upload(*, principal: Principal, upload_id: str) -> dict[str, Any]:
    """Read what was sent; where it is what was announced, make it an artifact and return it.

    Twice is the same artifact. It lives as long as artifacts do, from now on.

    Raises:
        ArtifactNotFound: Unknown, or another workspace's.
        ArtifactExpired: Its time is over.
        NothingSent: The bytes are not there yet.
        InvalidInput: They are not those that were announced; they are gone then.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    return await run_to_completion(_complete(principal, upload_id))


async def _complete(principal: Principal, upload_id: str) -> dict[str, Any]:
    upload = await in_thread(_upload, principal, upload_id)
    if upload.artifact_id is None:
        # Before the bytes are read: those that were sent stay there while a person is asked.
        use = tool_call_request(principal, "complete_artifact_upload", {"uploadId": upload.id})
        approval = await in_thread(admit_call, use)
        try:
            await in_long_thread(_take_in, upload)
        except FileNotFoundError:
            await in_thread(_require_complete, upload)
        else:
            await in_thread(_make_artifact, principal, upload, approval)
            await in_long_thread(blob_storage().delete, staging_name(upload.id))
    return await in_thread(lambda: describe_artifact(Artifact.objects.get(id=upload.artifact_id)))


def _upload(principal: Principal, upload_id: str) -> ArtifactUpload:
    principal.require("artifacts:write")
    found = ArtifactUpload.objects.filter(id=upload_id, workspace_id=principal.workspace_id)
    upload = found.first()
    if upload is None:
        raise ArtifactNotFound(f"There is no upload {upload_id[:64]}.", next_actions=[])
    if upload.artifact_id is None and upload.expires_at <= datetime.now(UTC):
        told = f"The time to complete the upload {upload_id} is over."
        raise ArtifactExpired(told, next_actions=[])
    return upload


def _require_complete(upload: ArtifactUpload) -> None:
    """Refuse an upload of which nothing is there, unless somebody else completed it meanwhile."""
    upload.refresh_from_db()
    if upload.artifact_id is None:
        raise NothingUploaded(f"Nothing has been sent for the upload {upload.id}.")


def _take_in(upload: ArtifactUpload) -> None:
    """Read the bytes, whatever a server said of them, and put them where their hash wants them."""
    storage, digest = blob_storage(), hashlib.sha256()
    seized = storage.open_upload(staging_name(upload.id))
    try:
        found = seized.size
        if found == upload.size_bytes:
            for piece in iter(partial(seized.read, PIECE_BYTES), b""):
                digest.update(piece)
        if digest.hexdigest() == upload.sha256:
            storage.promote_upload(seized, blob_path(upload.sha256), size_bytes=upload.size_bytes)
            return
    finally:
        storage.close_upload(seized)
    storage.delete(staging_name(upload.id))
    announced = {"sizeBytes": upload.size_bytes, "sha256": upload.sha256}
    raise InvalidInput(
        "What was sent is not what was announced; send it again.",
        details={"sizeBytes": found, "announced": announced},
    )


def _make_artifact(
    principal: Principal, upload: ArtifactUpload, approval: Confirmation | None
) -> None:
    """Write the row, once: of two who complete at the same time both get the first one's."""
    now = datetime.now(UTC)
    row = Artifact(
        id=new_id("art_"),
        tenant_id=upload.tenant_id,
        workspace_id=upload.workspace_id,
        run_id="",
        kind=KIND,
        name=upload.name,
        mime_type=upload.mime_type,
        sha256=upload.sha256,
        size_bytes=upload.size_bytes,
        created_at=now,
        expires_at=now + timedelta(milliseconds=settings.ARTIFACT_TTL_MS),
    )
    with transaction.atomic():
        mine = ArtifactUpload.objects.filter(id=upload.id, artifact_id__isnull=True)
        if mine.update(artifact_id=row.id):
            use_approval(approval)
            row.save(force_insert=True)
            record(_deed("artifact.uploaded", principal, upload, {"artifactId": row.id}))
    upload.refresh_from_db()


def _deed(
    action: str, principal: Principal, upload: ArtifactUpload, facts: dict[str, Any]
) -> AuditEvent:
    place = upload.tenant_id, upload.workspace_id
    return AuditEvent(action, principal.id, "upload", upload.id, *place, facts)


def delete_old_uploads() -> int:
    """Remove uploads that were complete or abandoned an hour after their time, and what was sent
    for them; return how many.
    """
    over = ArtifactUpload.objects.filter(expires_at__lte=datetime.now(UTC) - TIME_TO_SEND)

    def forget_some() -> int:
        ids = list(over.values_list("id", flat=True)[:BATCH_SIZE])
        for upload_id in ids:
            blob_storage().delete(staging_name(upload_id))
        return over.filter(id__in=ids).delete()[0]

    return run_in_batches(forget_some, full=BATCH_SIZE)
