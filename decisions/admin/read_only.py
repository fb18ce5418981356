"""Read-only model admins whose lists never count a whole table."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, TypeVar

from django.contrib.admin import AdminSite, ShowFacets
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import quote, unquote
from django.contrib.admin.views.main import PAGE_VAR
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.views import ChangeList

from decisions.foundation.presentation.html import admin_url
from decisions.foundation.presentation.visible_text import visible
from decisions.foundation.presentation.words import lazy_word

Row = TypeVar("Row", bound=Model)
PART_HEADER = "X-Continuity-Part"  # static/continuity/refresh.js
DEEPEST_PAGE = 2000  # OFFSET gets slow; older rows are found with a filter


class HasNextChangeList(ChangeList):
    """A page of rows with `has_next`: it reads one row more than it shows and counts nothing."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the requested page."""
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
        # Attributes of a counting change list that the templates of Django and Unfold read.
        self.result_count = self.full_result_count = len(self.result_list)
        self.show_full_result_count = self.can_show_all = self.multi_page = False
        self.paginator = SimpleNamespace(
            template_name="admin/decisions/has_next.html", per_page=self.list_per_page, num_pages=1
        )

    def url_for_result(self, result: Model) -> str:
        """Return the URL of the row's page with the plain id; Django would write run_5F…"""
        return admin_url(self.opts.model_name or "", str(result.pk)) or ""


class TitledAdmin(ModelAdmin):
    """A model admin whose list has one title in the navigation, in its heading and in the tab.

    Attributes:
        list_title: The title of the list, by default the model's plural name.
        new_title: The title of the form that adds a row.
        list_empty: What would fill the list, shown while it has no rows.
    """

    list_title: str | Promise = ""
    new_title: str | Promise = _("New row")
    list_empty: str | Promise = ""

    def __init__(self, model: type[Model], admin_site: AdminSite) -> None:
        super().__init__(model, admin_site)
        self.opts.verbose_name = lazy_word(self.opts.verbose_name)
        self.list_title = self.list_title or capfirst(self.opts.verbose_name_plural)
        for field in model._meta.fields:  # the labels of columns that have no label of their own
            field.verbose_name = lazy_word(field.verbose_name)
            if choices := getattr(field, "choices", None):
                field.choices = [(value, lazy_word(label)) for value, label in choices]

    def get_list_title(self, request: HttpRequest) -> str:
        """Return the title of the requested list; subclasses name filtered lists."""
        return str(self.list_title)

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return what the template of the list gets besides the rows; subclasses add to it."""
        return {}

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Return what the template of a row's page gets besides the row; subclasses add to it."""
        return {}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list under its title."""
        more = self.list_context(request)
        context = {"title": self.get_list_title(request), **more, **(extra_context or {})}
        response: HttpResponse = super().changelist_view(request, context)
        if is_refresh(request) and isinstance(response, TemplateResponse):
            response.template_name = "admin/decisions/list_rows.html"
        return response

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the page of a row, which the tab names after the row and its list."""
        title = self.list_title if object_id else self.new_title
        more = self.page_context(request, plain_id(object_id)) if object_id else {}
        context = {"title": title, **more, **(extra_context or {})}
        response: HttpResponse = super().changeform_view(request, object_id, form_url, context)
        if isinstance(response, TemplateResponse) and response.context_data is not None:
            response.context_data["subtitle"] = visible(response.context_data.get("subtitle") or "")
        return response


class ReadOnlyAdmin(TitledAdmin):
    """Lists and pages for users with the model's view permission; every write answers 403."""

    list_per_page = 50
    list_disable_select_all = True
    show_full_result_count = False
    show_facets = ShowFacets.NEVER  # a facet is a count of its whole column
    sortable_by: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[HasNextChangeList]:
        """Return the change list that does not count rows."""
        return HasNextChangeList

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to add rows."""
        return False

    def has_create_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may add rows, on a page of the model's own."""
        return request.user.has_perm(f"{self.opts.app_label}.add_{self.opts.model_name}")

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may use the actions of the list and of the rows' pages."""
        return request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}")

    def require_operate_permission(self, request: HttpRequest) -> None:
        """Raise PermissionDenied for a user without `has_operate_permission`."""
        if not self.has_operate_permission(request):
            raise PermissionDenied

    def show(
        self, request: HttpRequest, template: str, title: str | Promise, context: Mapping[str, Any]
    ) -> TemplateResponse:
        """Return a page of the admin that is neither a list nor a form of Django's."""
        site = self.admin_site.each_context(request)
        shown = {**site, "model_admin": self, "title": title, **context}
        return TemplateResponse(request, template, shown)

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return whether the list links to such a page."""
        return {"may_create": self.has_create_permission(request)}

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show the form of a new row, or redirect to it if it has a page of its own.

        Raises:
            PermissionDenied: The user may not add rows.
            Http404: No form adds one, whatever the user may do: runs and calls do.
        """
        if self.has_add_permission(request):
            response: HttpResponse = super().add_view(request, *args, **kwargs)
            return response
        if request.method != "GET" or not self.has_create_permission(request):
            raise PermissionDenied
        try:
            return redirect(f"admin:{self.opts.app_label}_{self.opts.model_name}_new")
        except NoReverseMatch:
            raise Http404(f"No form adds a row to {self.list_title}.") from None

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to change rows."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to delete rows."""
        return False

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the page of a row; accepts the plain id and Django's quoted form of it."""
        response: HttpResponse = super().change_view(
            request, quote(plain_id(object_id)), *args, **kwargs
        )
        return response

    def row_or_404(self, request: HttpRequest, rows: QuerySet[Row], object_id: str) -> Row:
        """Return one of the rows by its plain or quoted id, to users who may view them.

        Raises:
            PermissionDenied: The user may not.
            Http404: There is no such row.
        """
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = rows.filter(pk=plain_id(object_id)).first()
        if row is None:
            raise Http404(f"No {rows.model._meta.verbose_name} has the id {object_id}.")
        return row


def is_refresh(request: HttpRequest) -> bool:
    """Return whether an open page requests only the parts of it that change."""
    return request.headers.get(PART_HEADER) == "live"


def plain_id(object_id: str) -> str:
    """Return the id in a URL, unquoted.

    Ids of this project are lower case, so `_5F` can only be an underscore that Django quoted.
    """
    return unquote(object_id) if "_5F" in object_id else object_id
