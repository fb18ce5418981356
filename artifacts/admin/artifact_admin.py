"""The list of artifacts and the page of one: a preview that is always text or a picture, and a
download.
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
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from artifacts.admin.responses import attachment, is_picture, picture
from artifacts.chunks import is_text
from artifacts.models import Artifact
from artifacts.selectors import open_content
from decisions.admin.filters import TimeFilter, WorkspaceFilter
from decisions.admin.read_only import ReadOnlyAdmin, plain_id
from decisions.errors import Refused
from decisions.identity.principals import admin_principal
from decisions.presentation.formatting import shorten, size
from decisions.presentation.html import link_to, moment, pill

PREVIEW_BYTES = 64 * 1024


class KeptFilter(SimpleListFilter):
    """Artifacts whose bytes are there, or tombstones."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        """Return both."""
        return [("kept", "Kept"), ("expired", "Expired")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep one of them."""
        if self.value() is None:
            return queryset
        return queryset.filter(expired_at__isnull=self.value() == "kept")


class TypeFilter(SimpleListFilter):
    """By what kind of thing it is."""

    title = "type"
    parameter_name = "type"
    kinds = {"picture": "image/", "text": "text/", "json": "application/json"}

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        """Return the kinds."""
        return [("picture", "Pictures"), ("text", "Text"), ("json", "JSON")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep one kind."""
        start = self.kinds.get(self.value() or "")
        return queryset.filter(mime_type__startswith=start) if start else queryset


@admin.register(Artifact)
class ArtifactAdmin(ReadOnlyAdmin):
    """Newest first."""

    list_display = ("shown_name", "mime_type", "shown_size", "of_run", "made", "kept_until")
    list_filter = (TypeFilter, KeptFilter, WorkspaceFilter, TimeFilter)
    ordering = ("-created_at", "-id")
    search_fields = ("id",)
    search_help_text = "art_… or run_… id, or a SHA-256"
    change_form_template = "admin/artifacts/page.html"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Artifact], search_term: str
    ) -> tuple[QuerySet[Artifact], bool]:
        """Find artifacts by what is indexed: their own id, their run's, their bytes' hash."""
        term = search_term.strip()
        if not term:
            return queryset, False
        column = "run_id" if term.startswith("run_") else "sha256" if len(term) == 64 else "id"
        return queryset.filter(**{column: term}), False

    def get_urls(self) -> list[URLPattern]:
        """Return the pages, and the two ways to the bytes before them."""
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
        """Answer a picture for an <img>; anything else is refused."""
        return self._answer(request, artifact_id, picture)

    def download_view(self, request: HttpRequest, artifact_id: str) -> HttpResponseBase:
        """Answer the bytes as a file to save."""
        return self._answer(request, artifact_id, lambda row, file: attachment(request, row, file))

    def _answer(
        self,
        request: HttpRequest,
        artifact_id: str,
        answer: Callable[[Artifact, IO[Any]], HttpResponseBase],
    ) -> HttpResponseBase:
        row = self._row(request, artifact_id)
        try:
            return answer(*self._open(request, row))
        except Refused as refusal:
            return HttpResponse(
                refusal.message, status=refusal.http_status, content_type="text/plain"
            )

    def _row(self, request: HttpRequest, artifact_id: str) -> Artifact:
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = Artifact.objects.filter(id=plain_id(artifact_id)).first()
        if row is None:
            raise Http404("There is no such artifact.")
        return row

    def _open(self, request: HttpRequest, row: Artifact) -> tuple[Artifact, IO[Any]]:
        operator = admin_principal(
            request.user.get_username(), tenant_id=row.tenant_id, workspace_id=row.workspace_id
        )
        return open_content(principal=operator, artifact_id=row.id)

    # --- the page -------------------------------------------------------------------------------

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show one artifact with what can be shown of it."""
        if request.method != "GET":
            raise PermissionDenied
        row = self._row(request, object_id)
        context = {
            **self.admin_site.each_context(request),
            **self._preview(request, row),
            "model_admin": self,
            "title": shorten(row.name, 80),
            "artifact": row,
            "picture": is_picture(row),
            "links": self._links(row),
            "kept_after_ms": settings.ARTIFACT_TTL_MS,
        }
        return TemplateResponse(request, "admin/artifacts/page.html", context)

    def _links(self, row: Artifact) -> dict[str, SafeString]:
        return {
            "run": link_to("run", row.run_id),
            "workspace": link_to("workspace", row.workspace_id),
        }

    def _preview(self, request: HttpRequest, row: Artifact) -> dict[str, Any]:
        """Return the beginning of a text, JSON laid out for reading where it is whole; or why there
        is none.
        """
        if row.expired_at is not None or not is_text(row.mime_type):
            return {}
        try:
            _, file = self._open(request, row)
        except Refused as refusal:
            return {"problem": refusal.message}
        with file:
            raw = file.read(PREVIEW_BYTES)
        text = raw.decode("utf-8", errors="replace")
        cut = row.size_bytes > len(raw)
        if "json" in row.mime_type and not cut:
            text = _laid_out(text)
        return {"text": text, "cut": cut, "shown_bytes": len(raw)}

    # --- columns --------------------------------------------------------------------------------

    @admin.display(description="Name")
    def shown_name(self, row: Artifact) -> SafeString:
        """Return the name, with a small picture where it is one."""
        name = shorten(row.name, 60)
        if not is_picture(row):
            return format_html('<span class="cty-named">{}</span>', name)
        src = reverse("admin:artifacts_artifact_inline", args=[row.id])
        image = format_html('<img class="cty-thumb" loading="lazy" alt="" src="{}">', src)
        return format_html('<span class="cty-named">{} {}</span>', image, name)

    @admin.display(description="Size")
    def shown_size(self, row: Artifact) -> str:
        """Return the size in a unit that fits."""
        return size(row.size_bytes)

    @admin.display(description="Run")
    def of_run(self, row: Artifact) -> SafeString:
        """Return the run that kept it, as a link."""
        return link_to("run", row.run_id)

    @admin.display(description="Made")
    def made(self, row: Artifact) -> SafeString:
        """Return when it was made."""
        return moment(row.created_at)

    @admin.display(description="Kept until")
    def kept_until(self, row: Artifact) -> SafeString:
        """Return when its bytes go, or that they are gone."""
        if row.expired_at is not None:
            return pill("expired", "canceled")
        return (
            moment(row.expires_at)
            if row.expires_at
            else format_html('<span class="cty-dim">{}</span>', "its run is active")
        )


def _laid_out(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):  # not JSON after all, or nested to annoy
        return text
