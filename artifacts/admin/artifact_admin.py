"""Admin pages of artifacts: the list, and one artifact with a preview and a download.

A preview is always escaped text or a raster image.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import IO, Any

from django.conf import settings
from django.contrib import admin
from django.contrib.admin import SimpleListFilter
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from artifacts.admin.responses import attachment_response, image_response, is_image
from artifacts.chunks import is_text
from artifacts.models import Artifact
from artifacts.selectors import open_content
from decisions.admin.acting import operator_of
from decisions.admin.filters import EndedFilter, TimeFilter, WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin
from decisions.foundation.errors import Refused
from decisions.foundation.presentation.formatting import shorten, size
from decisions.foundation.presentation.html import link_to, moment, pill
from decisions.foundation.presentation.refusals import refusal_text

PREVIEW_BYTES = 64 * 1024


class ArtifactStateFilter(EndedFilter):
    """Filter for artifacts with bytes or for expired ones."""

    field = "expired_at"
    options = (("kept", "Stored"), ("expired", "Expired"))


class ArtifactTypeFilter(SimpleListFilter):
    """Filter by the MIME type."""

    title = _("type")
    parameter_name = "type"
    prefixes = {"picture": "image/", "text": "text/", "json": "application/json"}

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        """Return the types."""
        return [("picture", str(_("Images"))), ("text", str(_("Text"))), ("json", "JSON")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the artifacts of the chosen type."""
        prefix = self.prefixes.get(self.value() or "")
        return queryset.filter(mime_type__startswith=prefix) if prefix else queryset


@admin.register(Artifact)
class ArtifactAdmin(ReadOnlyAdmin):
    """Artifacts, newest first."""

    list_title = _("Artifacts")
    list_empty = _("Files, screenshots and page texts that runs store, and uploads.")
    list_display = (
        "display_name",
        "mime_type",
        "display_size",
        "display_run",
        "display_created_at",
        "display_expires_at",
    )
    list_filter = (ArtifactTypeFilter, ArtifactStateFilter, WorkspaceFilter, TimeFilter)
    ordering = ("-created_at", "-id")
    search_fields = ("id",)
    search_help_text = _("art_… or run_… id, or a SHA-256")
    change_form_template = "admin/artifacts/page.html"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Artifact], search_term: str
    ) -> tuple[QuerySet[Artifact], bool]:
        """Find artifacts by their id, their run's id or their SHA-256, through an index."""
        term = search_term.strip()
        if not term:
            return queryset, False
        column = "run_id" if term.startswith("run_") else "sha256" if len(term) == 64 else "id"
        return queryset.filter(**{column: term}), False

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, with those of the inline image and the download."""
        wrap = self.admin_site.admin_view
        return [
            path(
                "<str:artifact_id>/inline/",
                wrap(self.inline_view),
                name="artifacts_artifact_inline",
            ),
            path(
                "<str:artifact_id>/download/",
                wrap(self.download_view),
                name="artifacts_artifact_download",
            ),
            *super().get_urls(),
        ]

    # --- the bytes ------------------------------------------------------------------------------

    def inline_view(self, request: HttpRequest, artifact_id: str) -> HttpResponseBase:
        """Return an image for an `<img>` element; 415 for other content."""
        return self._content_response(request, artifact_id, image_response)

    def download_view(self, request: HttpRequest, artifact_id: str) -> HttpResponseBase:
        """Return the bytes as a download."""
        return self._content_response(request, artifact_id, attachment_response)

    def _content_response(
        self,
        request: HttpRequest,
        artifact_id: str,
        respond: Callable[[Artifact, IO[Any]], HttpResponseBase],
    ) -> HttpResponseBase:
        row = self._row(request, artifact_id)
        try:
            return respond(*self._open(request, row))
        except Refused as refusal:
            return HttpResponse(
                refusal.message, status=refusal.http_status, content_type="text/plain"
            )

    def _row(self, request: HttpRequest, artifact_id: str) -> Artifact:
        return self.row_or_404(request, Artifact.objects.all(), artifact_id)

    def _open(self, request: HttpRequest, row: Artifact) -> tuple[Artifact, IO[Any]]:
        return open_content(principal=operator_of(request, row), artifact_id=row.id)

    # --- the page -------------------------------------------------------------------------------

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show an artifact with its preview."""
        if request.method != "GET":
            raise PermissionDenied
        row = self._row(request, object_id)
        context = {
            **self.admin_site.each_context(request),
            **self._preview(request, row),
            "model_admin": self,
            "title": shorten(row.name, 80),
            "artifact": row,
            "is_image": is_image(row),
            "links": self._links(row),
            "artifact_ttl_ms": settings.ARTIFACT_TTL_MS,
        }
        return TemplateResponse(request, "admin/artifacts/page.html", context)

    def _links(self, row: Artifact) -> dict[str, SafeString]:
        return {
            "run": link_to("run", row.run_id),
            "workspace": link_to("workspace", row.workspace_id),
        }

    def _preview(self, request: HttpRequest, row: Artifact) -> dict[str, Any]:
        """Return the start of a text (complete JSON is indented), or the problem; else nothing."""
        if row.expired_at is not None or not is_text(row.mime_type):
            return {}
        try:
            _, file = self._open(request, row)
        except Refused as refusal:
            return {"problem": refusal_text(refusal.message)}
        with file:
            raw = file.read(PREVIEW_BYTES)
        text = raw.decode("utf-8", errors="replace")
        is_cut = row.size_bytes > len(raw)
        if "json" in row.mime_type and not is_cut:
            text = _indented(text)
        return {"text": text, "is_cut": is_cut, "preview_bytes": len(raw)}

    # --- columns --------------------------------------------------------------------------------

    @admin.display(description=_("Name"))
    def display_name(self, row: Artifact) -> SafeString:
        """Return the name, with a thumbnail for an image."""
        name = shorten(row.name, 60)
        if not is_image(row):
            return format_html('<span class="cty-named">{}</span>', name)
        src = reverse("admin:artifacts_artifact_inline", args=[row.id])
        image = format_html('<img class="cty-thumb" loading="lazy" alt="" src="{}">', src)
        return format_html('<span class="cty-named">{} {}</span>', image, name)

    @admin.display(description=_("Size"))
    def display_size(self, row: Artifact) -> str:
        """Return the size with its unit."""
        return size(row.size_bytes)

    @admin.display(description=_("Run"))
    def display_run(self, row: Artifact) -> SafeString:
        """Return the run that created the artifact, as a link."""
        return link_to("run", row.run_id)

    @admin.display(description=_("Created"))
    def display_created_at(self, row: Artifact) -> SafeString:
        """Return when the artifact was created."""
        return moment(row.created_at)

    @admin.display(description=_("Expires"))
    def display_expires_at(self, row: Artifact) -> SafeString:
        """Return when the bytes are deleted, or that they are."""
        if row.expired_at is not None:
            return pill("expired", "canceled")
        return (
            moment(row.expires_at)
            if row.expires_at
            else format_html('<span class="cty-dim">{}</span>', _("after its run ends"))
        )


def _indented(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):  # invalid or too deeply nested JSON
        return text
