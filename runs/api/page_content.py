"""Read parts of stored results over REST."""

from __future__ import annotations

from django.http import HttpResponse
from rest_framework.request import Request

from decisions.rest_base.arguments import RequestArguments
from decisions.rest_base.openapi import WRITE_REFUSALS, component, operation
from decisions.rest_base.view import ApiView, json_response, principal_of
from runs.queries.page_reader import (
    READ_PAGE_CONTENT_INPUT,
    READ_PAGE_CONTENT_OUTPUT,
    read_page_content,
)

_ARGUMENTS = RequestArguments(READ_PAGE_CONTENT_INPUT)
_ANSWER = component("PageContent", READ_PAGE_CONTENT_OUTPUT)
_EXAMPLE = {
    "totalPages": 1,
    "matches": [{"item": 0, "heading": "Install", "text": "Install it: pip install it"}],
}


class PageContentView(ApiView):
    """POST /page-content."""

    scopes = {"POST": "artifacts:read"}

    @operation(
        "readPageContent",
        "Parts of what a run read",
        tag="artifacts",
        response=_ANSWER,
        body=component("PageContentSelection", READ_PAGE_CONTENT_INPUT),
        body_example={"artifactId": "art_01kb3x5j2e6s9w1z4b7f0h3k5m", "grep": "(?i)pip install"},
        examples={200: _EXAMPLE},
        refusals=(*WRITE_REFUSALS, 410),
    )
    def post(self, request: Request) -> HttpResponse:
        """Some pages, some sections, or matches of a pattern in context; changes nothing. Continue
        with `offset` = `nextOffset` until there is none.
        """
        call = self.arguments(_ARGUMENTS)
        return json_response(read_page_content(principal=principal_of(request), call=call))
