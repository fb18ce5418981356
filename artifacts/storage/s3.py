"""Artifact bytes in an S3 bucket, one object a content; loaded only where settings name it (boto3
takes a third of a second).

Whatever S3 answers becomes an OSError here, so that callers treat every storage alike; it tells the
operation and S3's code, never a request, whose headers hold credentials.
"""

from __future__ import annotations

import base64
import contextlib
import io
import secrets
from collections.abc import Iterator
from datetime import datetime
from typing import IO, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files.base import File
from storages.backends.s3 import S3Storage

from artifacts.storage.blob_lock import blob_lock

AHEAD_MIN, AHEAD_MAX = 1 << 20, 8 << 20  # bytes fetched at once for who reads on and on
_MISSING = frozenset({"404", "NoSuchKey", "NotFound"})


@contextlib.contextmanager
def _as_os_error(deed: str) -> Iterator[None]:
    """Raise what S3 says as FileNotFoundError or OSError."""
    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", "unknown"))
        if code in _MISSING:
            raise FileNotFoundError(f"S3 has no such object to {deed}") from None
        raise OSError(f"S3 did not {deed}: {code}") from None
    except BotoCoreError as error:
        raise OSError(f"S3 did not {deed}: {type(error).__name__}") from None


class RangedObject(io.RawIOBase):
    """An object opened for reading: each read is a ranged GET, a reader that goes on gets more at
    once.
    """

    def __init__(self, client: Any, bucket: str, key: str, found: dict[str, Any]) -> None:
        self._client, self._bucket, self._key = client, bucket, key
        self._etag, size_bytes = str(found["ETag"]), int(found["ContentLength"])
        self.size, self._at, self._ahead = size_bytes, 0, 0
        self._held, self._held_from = b"", 0

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """It can be read from anywhere."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go on reading from there; nothing is fetched yet."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        """Return where the next read begins."""
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, `size` of them where there are so many."""
        left = max(0, self.size - self._at)
        wanted = left if size < 0 else min(size, left)
        start = self._at - self._held_from
        if not 0 <= start <= len(self._held) - wanted:
            self._fetch(wanted)
            start = 0
        self._at += wanted
        return self._held[start : start + wanted]

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, for whoever wraps this in one."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _fetch(self, wanted: int) -> None:
        reads_on = bool(self._held) and self._at <= self._held_from + len(self._held)
        self._ahead = min(max(2 * self._ahead, AHEAD_MIN), AHEAD_MAX) if reads_on else 0
        stop = min(self._at + max(wanted, self._ahead), self.size)
        self._held, self._held_from = b"", self._at
        if stop > self._at:
            with _as_os_error("read"):
                answer = self._client.get_object(
                    Bucket=self._bucket,
                    Key=self._key,
                    IfMatch=self._etag,
                    Range=f"bytes={self._at}-{stop - 1}",
                )
                self._held = answer["Body"].read()


class BlobS3Storage(S3Storage):
    """What `artifacts.storage.files.BlobStorage` asks for, on S3 or a server that speaks like
    it.
    """

    client_config: Any

    def __init__(self, *, public_endpoint: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._public_endpoint = public_endpoint
        self.client_config = self.client_config.merge(
            Config(
                connect_timeout=5,
                read_timeout=30,
                retries={"max_attempts": 3, "mode": "standard"},
                # Servers that only speak like S3 often know no trailing checksums.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            )
        )

    @property
    def _client(self) -> Any:
        return self.connection.meta.client

    def _key(self, name: str) -> str:
        return f"{self.location}/{name}" if self.location else name

    def _at(self, name: str) -> dict[str, str]:
        return {"Bucket": self.bucket_name, "Key": self._key(name)}

    def _head(self, name: str) -> dict[str, Any]:
        with _as_os_error("look"):
            found: dict[str, Any] = self._client.head_object(**self._at(name))
        return found

    def _open(self, name: str, mode: str = "rb") -> File[Any]:
        found = self._head(name)
        file: Any = RangedObject(self._client, self.bucket_name, self._key(name), found)
        return File(file, name)

    def _save(self, name: str, content: File[Any]) -> str:
        content.seek(0)
        with _as_os_error("write"):
            self._client.put_object(**self._at(name), Body=content)
        return name

    def put(self, name: str, content: IO[bytes], *, size_bytes: int) -> None:
        """Have the content there, young; it is sent only where it is not there whole."""
        with blob_lock(name, shared=True):
            if not self._touch(name, size_bytes=size_bytes):
                content.seek(0)
                with _as_os_error("write"):
                    self._client.put_object(**self._at(name), Body=content)

    def open_upload(self, place: str) -> File[Any]:
        """Open a copy of an upload: the caller's leave to send does not reach it any more."""
        taken = f"{place}.{secrets.token_hex(8)}"
        self._copy(place, taken)
        return self._open(taken)

    def promote_upload(self, upload: File[Any], name: str, *, size_bytes: int) -> None:
        """Make an upload that was seized the content of that name; the bytes stay within S3."""
        with blob_lock(name, shared=True):
            if not self._touch(name, size_bytes=size_bytes):
                self._copy(str(upload.name), name)

    def close_upload(self, upload: File[Any]) -> None:
        """Let go of an upload that was seized."""
        upload.close()
        self.delete(str(upload.name))

    def _touch(self, name: str, *, size_bytes: int) -> bool:
        try:
            if self._head(name)["ContentLength"] != size_bytes:
                return False
            self._copy(name, name)
        except FileNotFoundError:
            return False
        return True

    def _copy(self, source: str, name: str) -> None:
        with _as_os_error("copy"):
            self._client.copy_object(
                **self._at(name), CopySource=self._at(source), MetadataDirective="REPLACE"
            )

    def delete(self, name: str) -> None:
        """Delete an object; one that is not there is no trouble."""
        with _as_os_error("delete"):
            self._client.delete_object(**self._at(name))

    def delete_if_older(self, name: str, *, before: datetime) -> bool:
        """Delete an object written before that time; tell whether it went."""
        with blob_lock(name, shared=False):
            try:
                if self._head(name)["LastModified"] >= before:
                    return False
            except FileNotFoundError:
                return False
            self.delete(name)
        return True

    def list_before(self, before: datetime) -> Iterator[str]:
        """Yield the name of every object written before that time."""
        root = self._key("")
        pages = self._client.get_paginator("list_objects_v2")
        with _as_os_error("list"):
            for page in pages.paginate(Bucket=self.bucket_name, Prefix=root):
                for one in page.get("Contents", ()):
                    if one["LastModified"] < before:
                        yield one["Key"].removeprefix(root)

    # --- what callers send and fetch themselves ---------------------------------------------------

    def presign_put(
        self, name: str, *, mime_type: str, size_bytes: int, sha256: str, expires_s: int
    ) -> tuple[str, dict[str, str]]:
        """Return an address that takes just these bytes by PUT, and the headers to send with it."""
        checksum = base64.b64encode(bytes.fromhex(sha256)).decode()
        bound = {"ContentType": mime_type, "ContentLength": size_bytes, "ChecksumSHA256": checksum}
        url = self._presign("put_object", {**self._at(name), **bound}, expires_s)
        return url, {
            "Content-Type": mime_type,
            "Content-Length": str(size_bytes),
            "x-amz-checksum-sha256": checksum,
        }

    def presign_get(self, name: str, *, disposition: str, expires_s: int) -> str:
        """Return an address that answers the bytes as a file to save, whatever they are."""
        shown = {
            "ResponseContentType": "application/octet-stream",
            "ResponseContentDisposition": disposition,
            "ResponseCacheControl": "private, no-store",
        }
        return self._presign("get_object", {**self._at(name), **shown}, expires_s)

    def _presign(self, deed: str, params: dict[str, Any], expires_s: int) -> str:
        client = self._client
        if self._public_endpoint:  # the name that callers know the server by
            client = self._create_session().client(
                "s3",
                region_name=self.region_name,
                endpoint_url=self._public_endpoint,
                config=self.client_config,
                verify=self.verify,
            )
        with _as_os_error("sign"):
            return str(client.generate_presigned_url(deed, Params=params, ExpiresIn=expires_s))
