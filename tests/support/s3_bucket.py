"""What tests say of a bucket."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from artifacts.storage.blobs import blob_storage
from artifacts.storage.s3 import BlobS3Storage

SECRET = "canary-secret-key"


@dataclass
class Bucket:
    """The bucket of a test, and what the product asks of it."""

    endpoint: str
    name: str
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def storage(self) -> BlobS3Storage:
        """The storage that the product uses now."""
        storage: Any = blob_storage()
        assert isinstance(storage, BlobS3Storage)
        return storage

    @property
    def url(self) -> str:
        """The value for CONTINUITY_ARTIFACT_STORAGE."""
        return f"s3://{self.name}/kept/here?endpoint={self.endpoint}"

    def keys(self) -> list[str]:
        """Return the name of everything in the bucket."""
        answer = self.storage.connection.meta.client.list_objects_v2(Bucket=self.name)
        return [one["Key"] for one in answer.get("Contents", [])]

    def deeds(self) -> list[str]:
        """Return the operations asked of S3 since the last time, and forget them."""
        told = [name for name, _ in self.calls]
        self.calls.clear()
        return told
