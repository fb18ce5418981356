"""Routes of confirmation links, one-time logins, signing in and the language of pages."""

from __future__ import annotations

from django.urls import URLPattern, path
from django.views.generic import RedirectView

from decisions.admin.sign_in import sign_in
from decisions.identity.one_time_login import one_time_login
from decisions.pages.confirmation import confirm_page
from decisions.pages.languages import ScriptTexts, choose_language

urlpatterns: list[URLPattern] = [
    path("confirm/<str:confirmation_id>/<str:signature>", confirm_page, name="confirm_link"),
    path("admin", RedirectView.as_view(url="/admin/", query_string=True)),
    path("admin/login/", sign_in),
    path("admin/language/", choose_language, name="set_language"),
    path("admin/texts/<str:language>.js", ScriptTexts.as_view(), name="script_texts"),
    path("admin/once/<str:token>/", one_time_login, name="one_time_login"),
]
