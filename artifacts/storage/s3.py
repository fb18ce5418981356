"""Blob storage in an S3 bucket; imported only if configured (boto3 takes a third of a second).

S3 errors become OSErrors with the operation and S3's error code, so that callers handle every
storage alike. They never contain the request, whose headers have credentials.
"""

from __future__ import annotations

import base64
import contextlib
import io
import secrets
from collections.abc import Iterator
from datetime import datetime
from functools import cached_property
from typing import IO, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files.base import File
from storages.backends.s3 import S3Storage

from artifacts.storage.blob_lock import blob_lock

READ_AHEAD_MIN, READ_AHEAD_MAX = 1 << 20, 8 << 20  # bytes per request for sequential reads
_MISSING = frozenset({"404", "NoSuchKey", "NotFound"})


@contextlib.contextmanager
def _as_os_error(operation: str) -> Iterator[None]:
    """Raise S3 errors as FileNotFoundError or OSError."""
    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", "unknown"))
        if code in _MISSING:
            raise FileNotFoundError(f"S3 {operation} failed: no such object") from None
        raise OSError(f"S3 {operation} failed: {code}") from None
    except BotoCoreError as error:
        raise OSError(f"S3 {operation} failed: {type(error).__name__}") from None


def _next_read_ahead(size_bytes: int) -> int:
    return min(max(2 * size_bytes, READ_AHEAD_MIN), READ_AHEAD_MAX)


class RangedObject(io.RawIOBase):
    """An object opened for reading with ranged GETs, with read-ahead for sequential reads."""

    def __init__(self, client: Any, bucket: str, key: str, found: dict[str, Any]) -> None:
        self._client, self._bucket, self._key = client, bucket, key
        self._etag, size_bytes = str(found["ETag"]), int(found["ContentLength"])
        self.size, self._at, self._read_ahead = size_bytes, 0, 0
        self._buffer, self._buffer_start = b"", 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position of the next read; fetches nothing."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        """Return the position of the next read."""
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most `size` of them."""
        left = max(0, self.size - self._at)
        wanted = left if size < 0 else min(size, left)
        start = self._at - self._buffer_start
        if not 0 <= start <= len(self._buffer) - wanted:
            self._fetch(wanted)
            start = 0
        self._at += wanted
        return self._buffer[start : start + wanted]

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, for io.BufferedReader."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _fetch(self, wanted: int) -> None:
        is_sequential = bool(self._buffer) and self._at <= self._buffer_start + len(self._buffer)
        self._read_ahead = _next_read_ahead(self._read_ahead) if is_sequential else 0
        stop = min(self._at + max(wanted, self._read_ahead), self.size)
        self._buffer, self._buffer_start = b"", self._at
        if stop > self._at:
            with _as_os_error("read"):
                answer = self._client.get_object(
                    Bucket=self._bucket,
                    Key=self._key,
                    IfMatch=self._etag,
                    Range=f"bytes={self._at}-{stop - 1}",
                )
                self._buffer = answer["Body"].read()


class BlobS3Storage(S3Storage):
    """A `BlobStorage` on S3 or an S3-compatible server."""

    client_config: Any

    def __init__(self, *, public_endpoint: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._public_endpoint = public_endpoint
        self.client_config = self.client_config.merge(
            Config(
                connect_timeout=5,
                read_timeout=30,
                retries={"max_attempts": 3, "mode": "standard"},
                max_pool_connections=32,  # more than threads that use it at once
                # Many S3-compatible servers do not support trailing checksums.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            )
        )

    @cached_property
    def client(self) -> Any:
        """Boto3's client, for all threads; to make one takes 0.1 s."""
        return self._new_client(self.endpoint_url)

    @cached_property
    def _signer(self) -> Any:
        """The client that signs URLs with the server's address for callers outside."""
        return self._new_client(self._public_endpoint) if self._public_endpoint else self.client

    def _new_client(self, endpoint: str | None) -> Any:
        return self._create_session().client(
            "s3",
            region_name=self.region_name,
            use_ssl=self.use_ssl,
            endpoint_url=endpoint,
            config=self.client_config,
            verify=self.verify,
        )

    def _key(self, name: str) -> str:
        return f"{self.location}/{name}" if self.location else name

    def _at(self, name: str) -> dict[str, str]:
        return {"Bucket": self.bucket_name, "Key": self._key(name)}

    def _head(self, name: str) -> dict[str, Any]:
        with _as_os_error("head"):
            found: dict[str, Any] = self.client.head_object(**self._at(name))
        return found

    def _open(self, name: str, mode: str = "rb") -> File[Any]:
        found = self._head(name)
        file: Any = RangedObject(self.client, self.bucket_name, self._key(name), found)
        return File(file, name)

    def _save(self, name: str, content: File[Any]) -> str:
        content.seek(0)
        with _as_os_error("write"):
            self.client.put_object(**self._at(name), Body=content)
        return name

    def put(self, name: str, content: IO[bytes], *, size_bytes: int) -> None:
        """Store the content unless the object is there with this size; update its time."""
        with blob_lock(name, shared=True):
            if not self._touch(name, size_bytes=size_bytes):
                content.seek(0)
                with _as_os_error("write"):
                    self.client.put_object(**self._at(name), Body=content)

    def open_upload(self, name: str) -> File[Any]:
        """Open a copy of a staged upload, which the caller's presigned URL cannot change."""
        copy = f"{name}.{secrets.token_hex(8)}"
        self._copy(name, copy)
        return self._open(copy)

    def promote_upload(self, upload: File[Any], name: str, *, size_bytes: int) -> None:
        """Store an open upload under another name, by a copy within S3."""
        with blob_lock(name, shared=True):
            if not self._touch(name, size_bytes=size_bytes):
                self._copy(str(upload.name), name)

    def close_upload(self, upload: File[Any]) -> None:
        """Close an open upload and delete its copy."""
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
            self.client.copy_object(
                **self._at(name), CopySource=self._at(source), MetadataDirective="REPLACE"
            )

    def delete(self, name: str) -> None:
        """Delete an object; a missing one is no error."""
        with _as_os_error("delete"):
            self.client.delete_object(**self._at(name))

    def delete_if_older(self, name: str, *, before: datetime) -> bool:
        """Delete an object written before that time; return whether it was deleted."""
        with blob_lock(name, shared=False):
            try:
                if self._head(name)["LastModified"] >= before:
                    return False
            except FileNotFoundError:
                return False
            self.delete(name)
        return True

    def list_before(self, before: datetime) -> Iterator[str]:
        """Yield the names of all objects written before that time."""
        root = self._key("")
        pages = self.client.get_paginator("list_objects_v2")
        with _as_os_error("list"):
            for page in pages.paginate(Bucket=self.bucket_name, Prefix=root):
                for one in page.get("Contents", ()):
                    if one["LastModified"] < before:
                        yield one["Key"].removeprefix(root)

    # --- presigned URLs ---------------------------------------------------------------------------

    def presign_put(
        self, name: str, *, mime_type: str, size_bytes: int, sha256: str, expires_s: int
    ) -> tuple[str, dict[str, str]]:
        """Return a URL that accepts exactly these bytes by PUT, and the headers to send."""
        checksum = base64.b64encode(bytes.fromhex(sha256)).decode()
        bound = {"ContentType": mime_type, "ContentLength": size_bytes, "ChecksumSHA256": checksum}
        url = self._presign("put_object", {**self._at(name), **bound}, expires_s)
        return url, {
            "Content-Type": mime_type,
            "Content-Length": str(size_bytes),
            "x-amz-checksum-sha256": checksum,
        }

    def presign_get(self, name: str, *, disposition: str, expires_s: int) -> str:
        """Return a URL that downloads the bytes as an attachment, whatever their type."""
        headers = {
            "ResponseContentType": "application/octet-stream",
            "ResponseContentDisposition": disposition,
            "ResponseCacheControl": "private, no-store",
        }
        return self._presign("get_object", {**self._at(name), **headers}, expires_s)

    def _presign(self, operation: str, params: dict[str, Any], expires_s: int) -> str:
        with _as_os_error("sign"):
            return str(
                self._signer.generate_presigned_url(operation, Params=params, ExpiresIn=expires_s)
            )
