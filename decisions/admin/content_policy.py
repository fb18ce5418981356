"""The Content-Security-Policy of the admin's pages."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

# Unfold's Alpine evaluates the expressions in its templates ('unsafe-eval'), and its templates have
# style attributes. Scripts come from this server's files alone: none in a page's text runs.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "frame-src 'none'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)


class ContentPolicyMiddleware(MiddlewareMixin):
    """Set the policy on responses of the admin that have none of their own."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Return the response with the header."""
        if request.path.startswith("/admin"):
            response.headers.setdefault("Content-Security-Policy", POLICY)
        return response
