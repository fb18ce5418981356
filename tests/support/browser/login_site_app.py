"""A site with a login: CSRF, session cookies, a members page, and a page that leaks the password.

`python -m tests.support.browser.login_site_app FOLDER USERNAME PASSWORD` prints its address and
serves.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.core.management import call_command
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template import engines
from django.urls import path

PAGE = "<!doctype html><html><head><title>%s</title></head><body><main>%s</main></body></html>"
FORM = """{% if message %}<p role="alert">{{ message }}</p>{% endif %}
<form method="{{ method }}">{% if method == "post" %}{% csrf_token %}{% endif %}
<label>User name <input id="u" name="username" value="{{ typed }}"></label>
<label>Password <input id="p" name="password" type="{{ kind }}" value="{{ again }}"></label>
<button>Log in</button></form>"""
LEAKS = """<h1>Hello, {{ typed }}</h1><p>Your password is {{ again }}.</p>"""
MEMBERS = """<h1>Members</h1><p>Visit {{ visits }}</p><p id="kept"></p><a href="/logout">Log out</a>
<script>
  localStorage.setItem("seen", (localStorage.getItem("seen") || 0) * 1 + 1);
  document.getElementById("kept").textContent = "stored " + localStorage.getItem("seen");
</script>"""


def page(request: HttpRequest, title: str, source: str, **values: Any) -> HttpResponse:
    """Render a page with a title and a template."""
    template = engines["django"].from_string(PAGE % (title, source))
    return HttpResponse(template.render(values, request))


def log_in(request: HttpRequest) -> HttpResponse:
    """Show the login form, or log the user in."""
    from django.contrib.auth import authenticate, login  # after the applications are loaded

    values = {"method": "post", "kind": "password", "typed": request.POST.get("username", "")}
    if request.method == "POST":
        credentials = {"username": values["typed"], "password": request.POST.get("password", "")}
        user = authenticate(request, **credentials)
        if user is not None:
            login(request, user)
            return HttpResponseRedirect("/members")
        values["message"] = "That is not the password."
    return page(request, "Log in", FORM, **values)


def leaky(request: HttpRequest) -> HttpResponse:
    """Show the password in title, address and page, as no site should."""
    typed = request.GET.get("password", "")
    values = {"method": "get", "kind": "text", "typed": request.GET.get("username", "")}
    title = f"You typed {typed}" if typed else "Log in"
    return page(request, title, FORM + LEAKS, **values, again=typed, message=typed)


def members(request: HttpRequest) -> HttpResponse:
    """Show the members page to a logged-in user; count the visits of the session."""
    if not request.user.is_authenticated:
        return HttpResponseRedirect("/login")
    visits = request.session["visits"] = request.session.get("visits", 0) + 1
    time.sleep(float(request.GET.get("slow", 0)))
    return page(request, "Members", MEMBERS, visits=visits)


def leave(request: HttpRequest) -> HttpResponse:
    """Log the user out."""
    from django.contrib.auth import logout

    logout(request)
    return HttpResponseRedirect("/login")


def no_form(request: HttpRequest) -> HttpResponse:
    """Return a page without a form."""
    return page(request, "Nothing", "<h1>Nothing to fill in</h1>")


urlpatterns = [
    path("login", log_in),
    path("leaky", leaky),
    path("members", members),
    path("logout", leave),
    path("no_form", no_form),
]


def serve(folder: Path, username: str, password: str) -> None:
    """Serve the site until the process is killed."""
    settings.configure(
        SECRET_KEY="site",
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF="tests.support.browser.login_site_app",
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": str(folder / "site.sqlite3"),
            }
        },
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        LOGIN_URL="/login",
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        USE_TZ=True,
    )
    django.setup()
    call_command("migrate", verbosity=0)
    from django.contrib.auth.models import User

    User.objects.create_user(username, password=password)
    server = ThreadedWSGIServer(("127.0.0.1", 0), WSGIRequestHandler)
    server.set_app(get_wsgi_application())
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
