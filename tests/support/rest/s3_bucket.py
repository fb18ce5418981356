"""The S3 bucket of a test, and the requests that it received."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from artifacts.storage.blobs import blob_storage
from artifacts.storage.s3 import BlobS3Storage

KEY_ID, SECRET = "canary-key-id", "canary-secret-key"


@dataclass
class Bucket:
    """The bucket of a test, and the S3 operations that the product requests."""

    endpoint: str
    name: str
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def storage(self) -> BlobS3Storage:
        """Return the storage backend that the product uses."""
        storage: Any = blob_storage()
        assert isinstance(storage, BlobS3Storage)
        return storage

    @property
    def url(self) -> str:
        """Return the value for CONTINUITY_ARTIFACT_STORAGE."""
        return f"s3://{self.name}/kept/here?endpoint={self.endpoint}"

    def keys(self) -> list[str]:
        """Return the keys of all objects in the bucket."""
        response = self.storage.client.list_objects_v2(Bucket=self.name)
        return [item["Key"] for item in response.get("Contents", [])]

    def take_operations(self) -> list[str]:
        """Return the S3 operations since the last call of this method, and clear the list."""
        operations = [name for name, _ in self.calls]
        self.calls.clear()
        return operations
