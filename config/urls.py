"""The root URL configuration; the routes of a part's REST API are in its api/urls.py."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from config import health, metrics, schema

admin.autodiscover()  # see config.lazy_admin

urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(url="/admin/")),
    path("healthz", health.LivenessView.as_view()),
    path("readyz", health.ReadinessView.as_view()),
    path("readyz/web", health.WebReadinessView.as_view()),
    path("metrics", metrics.MetricsView.as_view()),
    path("api/schema", schema.SchemaView.as_view(), name="schema"),
    path("api/docs", schema.DocsView.as_view()),
    path("api/v1/", include("runs.api.urls")),
    path("api/v1/", include("runners.api.urls")),
    path("api/v1/", include("artifacts.api.urls")),
    path("api/v1/", include("decisions.api.urls")),
    path("", include("decisions.pages.urls")),
    path("admin/", admin.site.urls),
]
handler400 = "config.api_errors.bad_request"
handler404 = "config.api_errors.page_not_found"
handler500 = "config.api_errors.server_error"
