"""Uploads by callers: announced, sent directly to the storage, and verified on completion."""

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
from decisions.foundation.errors import ArtifactExpired, ArtifactNotFound, Conflict, InvalidInput
from decisions.foundation.infra.batches import BATCH_SIZE, run_in_batches
from decisions.foundation.infra.clock import to_ms
from decisions.foundation.infra.ids import new_id
from decisions.foundation.infra.threads import in_long_thread, in_thread, run_to_completion
from decisions.foundation.validation.storable import storable_text
from decisions.identity.authority import shared_by
from decisions.identity.principals import Principal
from decisions.models import Confirmation

KIND = "upload"
OPEN_MAX = 100  # incomplete uploads per workspace
TIME_TO_SEND = timedelta(hours=1)
PIECE_BYTES = 1 << 20


class TooManyUploads(Conflict):
    """The workspace has too many incomplete uploads."""

    retryable = True
    recovery = "Complete the open uploads, or wait: they expire after an hour."


class NothingUploaded(Conflict):
    """No bytes were sent for the upload yet."""

    retryable = True
    recovery = "Send the bytes by PUT to the url of the upload, then complete it."


def start_upload(
    *, principal: Principal, name: str, mime_type: str, size_bytes: int, sha256: str, base_url: str
) -> dict[str, Any]:
    """Announce an upload and return {uploadId, method, url, headers, expiresAt}: where to send the
    bytes. Commits.

    Args:
        base_url: the URL of the server's own upload endpoint with a trailing slash, for a storage
            without presigned URLs.

    Raises:
        InvalidInput: Larger than UPLOAD_MAX_BYTES.
        TooManyUploads: OPEN_MAX uploads are open.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    principal.require("artifacts:write")
    most = settings.UPLOAD_MAX_BYTES
    if size_bytes > most:
        raise InvalidInput(
            f"sizeBytes: at most {most} bytes are accepted.", details={"maxBytes": most}
        )
    now = datetime.now(UTC)
    upload = ArtifactUpload(
        id=new_id("upl_"),
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        principal_id=principal.id,
        trust=principal.trust,
        name=storable_text(name)[:255],
        mime_type=mime_type,
        sha256=sha256,
        size_bytes=size_bytes,
        created_at=now,
        expires_at=now + TIME_TO_SEND,
    )
    open_uploads = ArtifactUpload.objects.filter(
        workspace_id=principal.workspace_id, expires_at__gt=now, artifact_id__isnull=True
    )
    facts = {"sizeBytes": size_bytes, "sha256": sha256, "mimeType": mime_type}
    approval = admit_call(
        tool_call_request(principal, "start_artifact_upload", {"name": name, **facts})
    )
    with transaction.atomic():
        use_approval(approval)
        if len(open_uploads.values("id")[:OPEN_MAX]) >= OPEN_MAX:
            raise TooManyUploads(f"This workspace has {OPEN_MAX} open uploads already.")
        upload.save(force_insert=True)
        record(_audit_event("artifact.upload_started", principal, upload, facts))
    url, headers = _destination(upload, base_url)
    return {
        "uploadId": upload.id,
        "method": "PUT",
        "url": url,
        "headers": headers,
        "expiresAt": to_ms(upload.expires_at),
    }


def _destination(upload: ArtifactUpload, base_url: str) -> tuple[str, dict[str, str]]:
    sign = getattr(blob_storage(), "presign_put", None)
    if sign is None:
        length = str(upload.size_bytes)
        return base_url + create_ticket(upload), {
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
    """A request body that is read as it arrives."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""


class _UploadBody(File):  # type: ignore[type-arg]
    """A request body as a File for the storage, limited to the announced size; with `is_limit` it
    may be shorter.
    """

    def __init__(self, body: Readable, size_bytes: int, *, is_limit: bool = False) -> None:
        super().__init__(None)
        self._body = body
        self._announced, self._is_limit = size_bytes, is_limit

    def chunks(self, chunk_size: int | None = None) -> Iterator[bytes]:
        """Yield the body in pieces; raise InvalidInput if its size is not as announced."""
        left = self._announced
        for piece in iter(partial(self._body.read, PIECE_BYTES), b""):
            left -= len(piece)
            if left < 0:
                break
            yield piece
        if self._is_limit:
            left = min(left, 0)
        if left:
            most = "at most " if self._is_limit else ""
            raise InvalidInput(f"The body has to have {most}{self._announced} bytes, as announced.")


async def receive_upload(*, ticket: Ticket | None, body: Readable, mime_type: str) -> None:
    """Store the bytes of an upload in the staging area; a repeated request replaces them.

    Raises:
        ArtifactNotFound: The ticket is invalid or expired.
        Conflict: The upload is complete already.
        InvalidInput: The size or the media type is not the announced one; nothing is stored.
    """
    if ticket is not None and ticket.is_result:
        content = _UploadBody(body, ticket.size_bytes, is_limit=True)
        await in_long_thread(blob_storage().save, staging_name(ticket.upload_id), content)
        return
    upload = await in_thread(_open_upload, ticket, mime_type)
    content = _UploadBody(body, upload.size_bytes)
    await in_long_thread(blob_storage().save, staging_name(upload.id), content)


def _open_upload(ticket: Ticket | None, mime_type: str) -> ArtifactUpload:
    upload = ticket and ArtifactUpload.objects.filter(id=ticket.upload_id).first()
    if not upload:
        message = "There is no upload at this address, or it has expired."
        raise ArtifactNotFound(message, next_actions=[])
    if upload.artifact_id is not None:
        raise Conflict(f"The upload {upload.id} is complete already.")
    if mime_type != upload.mime_type:
        raise InvalidInput(f"Content-Type: it has to be {upload.mime_type}, as announced.")
    return upload


async def complete_upload(*, principal: Principal, upload_id: str) -> dict[str, Any]:
    """Verify the bytes of an upload, create the artifact and return it. Commits.

    Calling it twice returns the same artifact. Its time to live starts now.

    Raises:
        ArtifactNotFound: Unknown, or another caller's.
        ArtifactExpired: The upload has expired.
        NothingUploaded: No bytes were sent yet.
        InvalidInput: The size or SHA-256 is not the announced one; the bytes are deleted.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    return await run_to_completion(_complete(principal, upload_id))


async def _complete(principal: Principal, upload_id: str) -> dict[str, Any]:
    upload = await in_thread(_upload, principal, upload_id)
    if upload.artifact_id is None:
        # Before the bytes are verified: they stay in the staging area during a confirmation.
        call = tool_call_request(principal, "complete_artifact_upload", {"uploadId": upload.id})
        approval = await in_thread(admit_call, call)
        try:
            await in_long_thread(_verify_and_promote, upload)
        except FileNotFoundError:
            await in_thread(_require_complete, upload)
        else:
            await in_thread(_create_artifact, principal, upload, approval)
            await in_long_thread(blob_storage().delete, staging_name(upload.id))
    return await in_thread(lambda: describe_artifact(Artifact.objects.get(id=upload.artifact_id)))


def _upload(principal: Principal, upload_id: str) -> ArtifactUpload:
    principal.require("artifacts:write")
    found = ArtifactUpload.objects.filter(shared_by(principal), id=upload_id)
    upload = found.filter(principal_id=principal.id).first()
    if upload is None:
        raise ArtifactNotFound(f"There is no upload {upload_id[:64]}.", next_actions=[])
    if upload.artifact_id is None and upload.expires_at <= datetime.now(UTC):
        raise ArtifactExpired(f"The upload {upload_id} has expired.", next_actions=[])
    return upload


def _require_complete(upload: ArtifactUpload) -> None:
    """Raise if no bytes were sent, unless a concurrent call completed the upload."""
    upload.refresh_from_db()
    if upload.artifact_id is None:
        raise NothingUploaded(f"No bytes have been sent for the upload {upload.id}.")


def _verify_and_promote(upload: ArtifactUpload) -> None:
    """Verify the staged bytes by reading them, and store them under their SHA-256."""
    storage = blob_storage()
    staged = storage.open_upload(staging_name(upload.id))
    try:
        found = staged.size
        if found == upload.size_bytes and _sha256_of(staged) == upload.sha256:
            storage.promote_upload(staged, blob_path(upload.sha256), size_bytes=upload.size_bytes)
            return
    finally:
        storage.close_upload(staged)
    storage.delete(staging_name(upload.id))
    announced = {"sizeBytes": upload.size_bytes, "sha256": upload.sha256}
    raise InvalidInput(
        "The bytes do not have the announced size and sha256; send them again.",
        details={"sizeBytes": found, "announced": announced},
    )


def _sha256_of(file: File[Any]) -> str:
    digest = hashlib.sha256()
    for piece in iter(partial(file.read, PIECE_BYTES), b""):
        digest.update(piece)
    return digest.hexdigest()


def _create_artifact(
    principal: Principal, upload: ArtifactUpload, approval: Confirmation | None
) -> None:
    """Write the artifact's row once: a concurrent completion finds the row of the first."""
    now = datetime.now(UTC)
    row = Artifact(
        id=new_id("art_"),
        tenant_id=upload.tenant_id,
        workspace_id=upload.workspace_id,
        trust=upload.trust or "local",
        principal_id=principal.id,
        user_id=principal.user_id,
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
        incomplete = ArtifactUpload.objects.filter(id=upload.id, artifact_id__isnull=True)
        if incomplete.update(artifact_id=row.id):
            use_approval(approval)
            row.save(force_insert=True)
            record(_audit_event("artifact.uploaded", principal, upload, {"artifactId": row.id}))
    upload.refresh_from_db()


def _audit_event(
    action: str, principal: Principal, upload: ArtifactUpload, facts: dict[str, Any]
) -> AuditEvent:
    owner = upload.tenant_id, upload.workspace_id
    return AuditEvent(action, principal.id, "upload", upload.id, *owner, facts)


def delete_old_uploads() -> int:
    """Delete uploads an hour after they expired, complete or not, with their staged bytes; return
    how many. Commits each batch.
    """
    old = ArtifactUpload.objects.filter(expires_at__lte=datetime.now(UTC) - TIME_TO_SEND)

    def delete_batch() -> int:
        ids = list(old.values_list("id", flat=True)[:BATCH_SIZE])
        for upload_id in ids:
            blob_storage().delete(staging_name(upload_id))
        return old.filter(id__in=ids).delete()[0]

    return run_in_batches(delete_batch)
