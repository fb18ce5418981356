"""A model that the admin site shows and never writes, in pages that never count a whole table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from django.contrib.admin import ShowFacets
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import quote, unquote
from django.contrib.admin.views.main import PAGE_VAR
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from unfold.admin import ModelAdmin
from unfold.views import ChangeList

from decisions.presentation.html import admin_url

DEEPEST_PAGE = 2000  # further back, a filter finds it faster than a page number


class HasNextChangeList(ChangeList):
    """A page of rows and whether there is a next one: one row more is read, nothing is counted."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the page that was asked for."""
        if not 1 <= self.page_num <= DEEPEST_PAGE:
            raise IncorrectLookupParameters
        start = (self.page_num - 1) * self.list_per_page
        rows = list(self.queryset[start : start + self.list_per_page + 1])
        self.has_next = len(rows) > self.list_per_page and self.page_num < DEEPEST_PAGE
        self.result_list = rows[: self.list_per_page]
        self.first_number = start + 1
        self.last_number = start + len(self.result_list)
        self.previous_url = self.get_query_string({PAGE_VAR: self.page_num - 1})
        self.next_url = self.get_query_string({PAGE_VAR: self.page_num + 1})
        # What Django's and Unfold's templates ask a counting change list for.
        self.result_count = self.full_result_count = len(self.result_list)
        self.show_full_result_count = self.can_show_all = self.multi_page = False
        self.paginator = SimpleNamespace(
            template_name="admin/decisions/has_next.html", per_page=self.list_per_page, num_pages=1
        )

    def url_for_result(self, result: Model) -> str:
        """Return the row's page by its id as people know it; Django would write run_5F…"""
        return admin_url(self.opts.model_name or "", str(result.pk)) or ""


class ReadOnlyAdmin(ModelAdmin):
    """Lists and pages for whoever may view the model; every way to write answers 403."""

    list_per_page = 50
    list_disable_select_all = True
    show_full_result_count = False
    show_facets = ShowFacets.NEVER  # a facet is a count of its whole column
    sortable_by: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[HasNextChangeList]:
        """Return the change list that counts nothing."""
        return HasNextChangeList

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody adds rows here."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody changes rows here."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody deletes rows here."""
        return False

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show a row named by its id as it is, or as Django quotes it."""
        answer: HttpResponse = super().change_view(
            request, quote(plain_id(object_id)), *args, **kwargs
        )
        return answer


def plain_id(object_id: str) -> str:
    """Return an id from an address. Ours are lower case, so `_5F` can only be Django's quoted
    underscore.
    """
    return unquote(object_id) if "_5F" in object_id else object_id
