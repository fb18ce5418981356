"""Artifacts over REST: chunk by chunk as S0 §3.3 has it, or whole as a download."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import IO, Any

from django.conf import settings
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from artifacts import chunks, selectors
from artifacts.api import contract
from artifacts.api.downloads import ByteRange, FileChunks, RangeOutside, headers_of, parse_range
from artifacts.models import Artifact
from artifacts.storage.blobs import presigned_url
from decisions.api.arguments import RequestArguments
from decisions.api.openapi import component, operation
from decisions.api.view import ApiView, json_response, principal_of
from decisions.errors import InvalidInput
from decisions.infra.threads import in_thread

_CHUNK_OF = RequestArguments(contract.GET_ARTIFACT_INPUT)
_WHOLE = RequestArguments(
    {
        **contract.GET_ARTIFACT_INPUT,
        "properties": {"artifactId": contract.GET_ARTIFACT_INPUT["properties"]["artifactId"]},
    }
)
_CHUNK = component("ArtifactChunk", contract.ARTIFACT_CHUNK)
_EXAMPLE = {
    "artifactId": "art_01kb3x5j2e6s9w1z4b7f0h3k5m",
    "mimeType": "application/json",
    "totalSize": 16,
    "offset": 0,
    "length": 16,
    "data": '{"pages": "two"}',
    "complete": True,
}
_BYTES = {"type": "string", "format": "binary"}
_IN_PATH = {"artifactId": "From a run's artifactIds."}
_REFUSALS = (400, 401, 403, 404, 410, 429)


class RangeNotSatisfiable(InvalidInput):
    """The range lies outside of the artifact."""

    http_status = 416
    recovery = "Ask for a range that starts before the size in the header Content-Range."


class ChunkView(ApiView):
    """GET /artifacts/{artifactId}."""

    scopes = {"GET": "artifacts:read"}

    @operation(
        "getArtifact",
        "A chunk of an artifact",
        tag="artifacts",
        response=_CHUNK,
        arguments=_CHUNK_OF,
        path=_IN_PATH,
        refusals=_REFUSALS,
        examples={200: _EXAMPLE},
    )
    def get(self, request: Request, **path: str) -> HttpResponse:
        """Text types come as text cut on whole characters, others as base64. All numbers are raw
        bytes.
        """
        asked = self.arguments(_CHUNK_OF)
        chunk = chunks.read_chunk(
            principal=principal_of(request), artifact_id=asked.pop("artifactId"), **asked
        )
        return json_response(chunk)


class ContentView(ApiView):
    """GET /artifacts/{artifactId}/content."""

    scopes = {"GET": "artifacts:read"}

    @operation(
        "downloadArtifact",
        "A whole artifact",
        tag="artifacts",
        response=_BYTES,
        path=_IN_PATH,
        media_types=("application/octet-stream",),
        refusals=_REFUSALS,
        others={
            206: _BYTES,
            304: "You have it: If-None-Match names its ETag.",
            307: "The bucket hands it out: follow Location, without the token.",
            416: "The range lies outside of the artifact.",
        },
    )
    async def get(self, request: Request, **path: str) -> HttpResponseBase:
        """The bytes as a file to save, never as a page to show. One `Range` is honoured; the ETag
        is their sha256.
        """
        artifact_id = self.arguments(_WHOLE)["artifactId"]
        row, file = await in_thread(
            selectors.open_content, principal=principal_of(request), artifact_id=artifact_id
        )
        headers = headers_of(row)
        if _has_it(request, headers["ETag"]):
            file.close()
            return HttpResponse(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        if elsewhere := await asyncio.to_thread(_elsewhere, request, row, headers):
            file.close()
            return HttpResponse(
                status=HTTPStatus.TEMPORARY_REDIRECT,
                headers={"Location": elsewhere, "Cache-Control": "no-store"},
            )
        try:
            span = _span(request, row, headers["ETag"])
        except RangeOutside:
            file.close()
            refusal = RangeNotSatisfiable(f"The artifact has {row.size_bytes} bytes.")
            beside = {"Content-Range": f"bytes */{row.size_bytes}"}
            return json_response(refusal.as_dict(), status=refusal.http_status, headers=beside)
        return _download(request, row, file, span, headers)


def _elsewhere(request: Request, row: Artifact, headers: dict[str, str]) -> str | None:
    """Return where the storage itself hands out bytes that are too many to pass through here."""
    if request.method == "HEAD" or row.size_bytes < settings.ARTIFACT_REDIRECT_BYTES:
        return None
    return presigned_url(row.sha256, disposition=headers["Content-Disposition"])


def _has_it(request: Request, etag: str) -> bool:
    given = request.headers.get("If-None-Match", "").split(",")
    named = [tag.strip().removeprefix("W/") for tag in given]
    return etag in named or "*" in named


def _span(request: Request, row: Artifact, etag: str) -> ByteRange | None:
    """Return the range to send; If-Range with another ETag means that the whole is wanted."""
    if request.headers.get("If-Range", etag) != etag or "Range" not in request.headers:
        return None
    return parse_range(request.headers["Range"], row.size_bytes)


def _download(
    request: Request, row: Artifact, file: IO[Any], span: ByteRange | None, headers: dict[str, str]
) -> HttpResponseBase:
    status = HTTPStatus.OK if span is None else HTTPStatus.PARTIAL_CONTENT
    if span is not None:
        headers["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{row.size_bytes}"
    sent = span or ByteRange(0, row.size_bytes)
    headers["Content-Length"] = str(sent.size_bytes)
    if request.method == "HEAD":
        file.close()
        return HttpResponse(status=status, headers=headers)
    return StreamingHttpResponse(FileChunks(file, sent), status=status, headers=headers)
