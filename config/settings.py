"""All settings, with the environment variables that they are read from (docs/configuration.md).

Only Django imports this module; the code reads `django.conf.settings`. `manage.py docker_runner`
runs without it, and reads CONTINUITY_RUNNER_TOKEN and CONTINUITY_RUNNER_IMAGE itself; so does the
search for a browser with CONTINUITY_CHROMIUM.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import environ
from django.core.exceptions import ImproperlyConfigured

from config import home, web
from config.llm import llm_settings, max_cost_usd, time_zone
from config.mail import mail_settings
from decisions.foundation.security.secret_files import SecretFileUnusable, read_secret_files
from runners.network.allowlist import parse_allowed_networks
from runners.workspace.workspace import WorkspacePolicy

if TYPE_CHECKING:
    from django.http import HttpRequest

try:
    read_secret_files(os.environ)
except SecretFileUnusable as error:
    raise ImproperlyConfigured(str(error)) from None
env = environ.Env()
BASE_DIR = Path(__file__).resolve().parent.parent
# These commands load only our own apps, without the web and the admin, to start faster: an agent
# host waits for mcp_stdio, and runs wait while a worker restarts.
IS_MCP_STDIO = sys.argv[1:2] == ["mcp_stdio"]
IS_LEAN = IS_MCP_STDIO or sys.argv[1:2] in (["worker"], ["scheduler"])

# --- installation ------------------------------------------------------------------------------
CONTINUITY_HOME = (
    Path(env.str("CONTINUITY_HOME", "") or BASE_DIR / ".continuity").expanduser().absolute()
)
EMBEDDED = not env.str("DATABASE_URL", "")
EMBEDDED_REDIS = not env.str("REDIS_URL", "")

if EMBEDDED:
    CONTINUITY_SECRET_KEYS = env.list(
        "CONTINUITY_SECRET_KEYS", default=[]
    ) or home.load_or_create_keys(CONTINUITY_HOME)
else:
    CONTINUITY_SECRET_KEYS = env.list("CONTINUITY_SECRET_KEYS", default=[])
    if not CONTINUITY_SECRET_KEYS or min(map(len, CONTINUITY_SECRET_KEYS)) < 32:
        raise ImproperlyConfigured(
            "CONTINUITY_SECRET_KEYS is required with DATABASE_URL: one or more random keys of at"
            " least 32 characters, separated by commas, the newest first."
        )
SECRET_KEY = home.derive_key(CONTINUITY_SECRET_KEYS[0], "django")
SECRET_KEY_FALLBACKS = [home.derive_key(key, "django") for key in CONTINUITY_SECRET_KEYS[1:]]

# --- database ----------------------------------------------------------------------------------
if EMBEDDED:
    _database = {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(CONTINUITY_HOME / "continuity.sqlite3"),
        # A file, because threads and processes cannot share an in-memory database.
        "TEST": {"NAME": str(CONTINUITY_HOME / "test.sqlite3")},
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": (
                "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;PRAGMA foreign_keys=ON;"
                "PRAGMA temp_store=MEMORY;PRAGMA cache_size=-16384;"
            ),
        },
    }
else:
    _database = env.db_url("DATABASE_URL")
    if _database["ENGINE"] == "django.db.backends.postgresql":
        _database["ENGINE"] = "decisions.foundation.database"
    # As in libpq's URIs, the host can be the percent-encoded directory of a socket.
    _database["HOST"] = unquote(_database.get("HOST") or "")
    if "," in _database["HOST"]:  # servers of which one takes writes
        _database.setdefault("OPTIONS", {}).setdefault("target_session_attrs", "read-write")
# Each transaction may get another connection of the server, as with PgBouncer in transaction mode.
TRANSACTION_POOLING = not EMBEDDED and env.bool("CONTINUITY_TRANSACTION_POOLING", False)
DATABASES = {
    "default": {
        **_database,
        "CONN_MAX_AGE": 600,
        "DISABLE_SERVER_SIDE_CURSORS": TRANSACTION_POOLING,
    }
}
DATABASE_LOCK_TIMEOUT_MS = 20_000  # of calls on PostgreSQL; `timeout` above is that of SQLite
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- redis: wake-ups, streaming, throttling; losing its data does no harm ------------------------
if EMBEDDED_REDIS:
    REDIS_SOCKET: Path | None = home.redis_socket(CONTINUITY_HOME)
    REDIS_URL = f"unix://{REDIS_SOCKET}?db=0"
else:
    REDIS_SOCKET = None
    REDIS_URL = env.str("REDIS_URL")
# Of all keys and channels, so that several installations can use one server.
REDIS_PREFIX = env.str("CONTINUITY_REDIS_PREFIX", "continuity:")

# --- celery: carries wake-ups for workers; the queue of runs is the database ---------------------
CELERY_BROKER_URL = home.broker_url(REDIS_URL)
CELERY_TASK_DEFAULT_QUEUE = "runs"
CELERY_TASK_IGNORE_RESULT = True
# Acknowledge a wake-up when it is received: runs are found without it too, and a late
# acknowledgement to a broker that is down by then crashes the worker (kombu 5.7).
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False  # else who reaches Redis could stop workers
# The worker starts the consumer again by itself (runs/worker/receiver.py).
CELERY_BROKER_CONNECTION_RETRY = CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = False
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 1200,
    "global_keyprefix": REDIS_PREFIX,
    "socket_connect_timeout": 2,
    # Without these, sending waits 6 s for a broker that is down, and forever for one that hangs.
    "socket_timeout": 5,
    "max_retries": 0,
    "socket_keepalive": True,
}
# The function that sends a wake-up, by dotted name, so that processes import Celery only to send.
CONTINUITY_NOTIFY_WORKERS = "config.celery.notify_workers"

# --- runs (S0 §4.5) ------------------------------------------------------------------------------
MAX_CONCURRENT_RUNS = env.int("CONTINUITY_MAX_CONCURRENT_RUNS", 5)
RUN_TTL_MS = env.int("CONTINUITY_RUN_TTL_MS", 30 * 60 * 1000)
ARTIFACT_TTL_MS = env.int("CONTINUITY_ARTIFACT_TTL_MS", 24 * 60 * 60 * 1000)
RUN_RETENTION_DAYS = env.int("RUN_RETENTION_DAYS", 30)
SYNC_TIMEOUT_MS = 300_000
ASYNC_TIMEOUT_MS = 600_000
MAX_URLS = 1000
MAX_TABS_PER_SESSION = 20
# Named sessions: how long pages stay open in a worker after a run; lifetime of an unused session.
SESSION_LIVE_IDLE_S = 900.0
SESSION_IDLE_TTL_MS = env.int("CONTINUITY_SESSION_IDLE_TTL_MS", 7 * 24 * 60 * 60 * 1000)
MAX_WAITING_PAGES = 100  # per worker, of suspended runs
THROTTLE_PER_SECOND = env.int("CONTINUITY_THROTTLE_PER_SECOND", 100)
# The heartbeat's interval; the silence after which the scheduler ends a worker's leases, and the
# shorter one after which a worker stops its own runs.
LEASE_BEAT_S, LEASE_LOST_S, LEASE_GIVE_UP_S = 5.0, 30.0, 20.0
POLL_S = 10.0  # a worker that received no wake-up for this long looks for runs
IDLE_STOP_S = env.float("CONTINUITY_IDLE_STOP_S", 600.0)  # of an unused background stack
# Addresses and networks that pages and webhooks of remote callers may reach besides public ones.
try:
    CONTINUITY_EGRESS_ALLOW = parse_allowed_networks(env.str("CONTINUITY_EGRESS_ALLOW", ""))
except ValueError as error:
    raise ImproperlyConfigured(f"CONTINUITY_EGRESS_ALLOW: {error}") from None
# Which runs record a Playwright trace from their first step: "retry" means retries of failed runs.
# Other runs record only a failure's last page, with "never" nothing.
TRACE = home.choice(env, "CONTINUITY_TRACE", "retry", "always", "never")
# Whether processes of the previous version run beside this one, or may again (docs/operations.md).
ROLLING_UPGRADE = env.bool("CONTINUITY_ROLLING_UPGRADE", False)
# Confirmations (docs/confirmations.md): how long they wait; whether the token of a chat decision
# goes through the agent's host (inline) or a person confirms elsewhere (out_of_band).
CONFIRM_TTL_S = env.float("CONTINUITY_CONFIRM_TTL_S", 1800.0)
CONFIRM_DELIVERY = home.choice(env, "CONTINUITY_CONFIRM_DELIVERY", "inline", "out_of_band")
# The class that writes the replies to chat messages.
CONTINUITY_RESPONDER = env.str("CONTINUITY_RESPONDER", "decisions.chat.responder.Composed")
# The URL of this server for users, which starts links in messages and upload addresses. If empty,
# links are paths, and uploads use the address of the request that announced them.
PUBLIC_URL_PARTS = web.public_url(env, "CONTINUITY_PUBLIC_URL")
PUBLIC_URL = PUBLIC_URL_PARTS.geturl()
# Whether a chat decision may include one reality-first question.
CONTINUITY_REALITY_FIRST = home.choice(env, "CONTINUITY_REALITY_FIRST", "low_intervention", "off")
# The largest MCP result, because the model reads it: longer lists of runs and events are paged.
# (The result of a run is limited to 64 KiB, a chunk of an artifact by `limit`.)
MCP_ANSWER_BYTES = 128 * 1024
CONTINUITY_MCP_TOOLSETS = env.list(
    "CONTINUITY_MCP_TOOLSETS",
    default=["runtime", "continuity", "workspace", "targets"]
    + (["developer"] if env.bool("CONTINUITY_DEVELOPER", False) else []),
)
# The toolsets of mcp_stdio; its host is a local caller, which gets the browser too.
STDIO_MCP_TOOLSETS = CONTINUITY_MCP_TOOLSETS + (
    [] if "CONTINUITY_MCP_TOOLSETS" in env.ENVIRON else ["browser"]
)
# Further modules that define templates (`TaskTemplate` subclasses).
CONTINUITY_TEMPLATE_MODULES = env.list("CONTINUITY_TEMPLATE_MODULES", default=[])
# The templates whose runs this worker claims: names, or names after a minus to exclude; empty: all.
WORKER_TEMPLATES = env.list("CONTINUITY_WORKER_TEMPLATES", default=[])
FAILPOINTS = False  # the tests kill processes at named places (runs/failpoints.py)

# --- the model of agent runs (runners/llm); agent runs need CONTINUITY_LLM_MODEL -----------------
# openai: any server with the chat completions API (CONTINUITY_LLM_BASE_URL: Ollama, vLLM, …).
LLM = llm_settings(
    provider=home.choice(env, "CONTINUITY_LLM_PROVIDER", "openai", "anthropic"),
    model=env.str("CONTINUITY_LLM_MODEL", "").strip(),
    base_url=env.str("CONTINUITY_LLM_BASE_URL", "").strip(),
    api_key=env.str("CONTINUITY_LLM_API_KEY", "").strip(),
    # US dollars per million input and output tokens, such as "1.25/10"; empty: costs are unknown.
    price=env.str("CONTINUITY_LLM_PRICE", "").strip(),
    # The same of input tokens that the server reads from its prompt cache, and writes to it.
    cache_price=env.str("CONTINUITY_LLM_CACHE_PRICE", "").strip(),
    timeout_ms=home.integer(
        env, "CONTINUITY_LLM_TIMEOUT_MS", 90_000, minimum=1000, maximum=600_000
    ),
    max_output_tokens=home.integer(env, "CONTINUITY_LLM_MAX_OUTPUT_TOKENS", 0, minimum=0),
    context_tokens=home.integer(env, "CONTINUITY_LLM_CONTEXT_TOKENS", 100_000, minimum=2000),
    # Whether the model gets pictures of pages, and the larger side of one in pixels.
    vision=home.choice(env, "CONTINUITY_LLM_VISION", "auto", "on", "off"),
    image_long_edge=home.integer(
        env, "CONTINUITY_LLM_IMAGE_LONG_EDGE", 1568, minimum=200, maximum=16_000
    ),
)
# The limits of one agent run: input and output tokens together, and US dollars (empty: no limit).
AGENT_MAX_TOKENS = home.integer(env, "CONTINUITY_AGENT_MAX_TOKENS", 1_000_000, minimum=1)
# The time zone of the users of agents: the model gets the date there.
AGENT_TIME_ZONE = time_zone(env, "CONTINUITY_AGENT_TIME_ZONE")
AGENT_MAX_COST_USD = max_cost_usd(env, "CONTINUITY_AGENT_MAX_COST_USD", LLM)

# --- artifacts -----------------------------------------------------------------------------------
# A folder, or s3://bucket/prefix?endpoint=https://…&region=…&public_endpoint=https://…; credentials
# are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or others that boto3 finds (a role, a profile).
CONTINUITY_ARTIFACT_STORAGE = env.str("CONTINUITY_ARTIFACT_STORAGE", "")
# The largest upload; the size from which downloads are redirected to the bucket.
UPLOAD_MAX_BYTES = env.int("CONTINUITY_UPLOAD_MAX_BYTES", 256 * 1024 * 1024)
ARTIFACT_REDIRECT_BYTES = 8 * 1024 * 1024
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "config.http.static_files.VersionedStorage"},
    "artifacts": home.artifact_storage(CONTINUITY_ARTIFACT_STORAGE, CONTINUITY_HOME),
}

# --- workspaces (S4 §6): the policy of their tools, which continuity.workspace.json can narrow ----
# Folders that targets of kind workspace must be inside, separated by ":"; empty: no such targets.
WORKSPACE_ROOTS = home.folders(env, "CONTINUITY_WORKSPACE_ROOTS")
# The folder of local callers that name no target; mcp_stdio uses --workspace or its own folder.
WORKSPACE = home.folder(env, "CONTINUITY_WORKSPACE")
WORKSPACE_POLICY = WorkspacePolicy(
    forbidden=(*WorkspacePolicy().forbidden, *env.list("CONTINUITY_FORBIDDEN_NAMES", default=[])),
    write_requires_diff=env.bool("CONTINUITY_WRITE_REQUIRES_DIFF", True),
    snapshot_retention=home.integer(env, "CONTINUITY_SNAPSHOT_RETENTION", 20, minimum=0),
    developer=env.bool("CONTINUITY_DEVELOPER", False),
    allowed_commands=tuple(
        env.list("CONTINUITY_ALLOWED_COMMANDS", default=["dev", "build", "lint"])
    ),
    command_timeout_ms=home.integer(env, "CONTINUITY_COMMAND_TIMEOUT_MS", 30_000, minimum=1),
    allowed_hosts=tuple(env.list("CONTINUITY_BROWSER_HOSTS", default=["localhost", "127.0.0.1"])),
    # Ports of this installation, which workspace pages must not open; `manage.py up` sets them.
    own_ports=home.ports(env, "CONTINUITY_OWN_PORTS", 8000),
    preview_url=env.str("CONTINUITY_PREVIEW_URL", "http://127.0.0.1:3001"),
    language=home.choice(env, "CONTINUITY_LANG", "ZH", "EN"),
)

# --- applications ---------------------------------------------------------------------------------
OUR_APPS = ["decisions", "artifacts", "runners", "runs", "mcp_server"]
INSTALLED_APPS = (
    OUR_APPS
    if IS_LEAN
    else [
        "unfold",
        "config.lazy_admin.LazyAdminConfig",  # django.contrib.admin
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "django.contrib.messages",
        "django.contrib.staticfiles",
        "rest_framework",
        "drf_spectacular",
        "drf_spectacular_sidecar",
        *OUR_APPS,
    ]
)
# All of these can run async; a sync one would keep a thread for every waiting request.
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "config.http.compression.CompressionMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "decisions.admin.content_policy.ContentPolicyMiddleware",
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "decisions" / "templates"],  # override Unfold's
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# --- the web --------------------------------------------------------------------------------------
DEBUG = False
# Proxies whose X-Forwarded-For and X-Forwarded-Proto count (runs.management.commands.serve).
TRUSTED_PROXIES = web.networks(env, "CONTINUITY_TRUSTED_PROXIES")
ALLOWED_HOSTS = env.list("CONTINUITY_ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CONTINUITY_TRUSTED_ORIGINS", default=[])
if PUBLIC_URL:
    ALLOWED_HOSTS.append(web.host_name(PUBLIC_URL_PARTS))
    CSRF_TRUSTED_ORIGINS.append(f"{PUBLIC_URL_PARTS.scheme}://{PUBLIC_URL_PARTS.netloc}")
# The origins whose pages may call the REST API with a token (config/http/cors.py).
CORS_ORIGINS = web.origins(env, "CONTINUITY_CORS_ORIGINS")
# With an https URL, browsers send cookies over TLS alone and remember to use TLS for this host.
IS_PUBLIC_OVER_TLS = PUBLIC_URL_PARTS.scheme == "https"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_PUBLIC_OVER_TLS
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if IS_PUBLIC_OVER_TLS else 0
# Without a trusted proxy, every request looks like plain HTTP and would be redirected forever.
SECURE_SSL_REDIRECT = IS_PUBLIC_OVER_TLS and bool(TRUSTED_PROXIES)
SECURE_SSL_HOST = PUBLIC_URL_PARTS.netloc or None
# Whether other names of the domain use TLS too, and preloading, are not this server's decisions.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_CONTENT_TYPE_NOSNIFF = True
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_NAME = "continuity_session"
CSRF_COOKIE_NAME = "continuity_csrf"
# The Origins from which browsers may connect to /ws/plugin: the extension of this repository, whose
# key fixes its id, and builds with another key.
PLUGIN_ORIGINS = [
    "chrome-extension://lllnilefilhffgilgeigmjgmhaeckfbl",
    *env.list("CONTINUITY_PLUGIN_ORIGINS", default=[]),
]
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024
APPEND_SLASH = False
STATIC_URL = "/static/"
# The languages of pages (a switch stores the choice in a cookie; else the browser's language). What
# APIs, agents and commands output is English.
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = not IS_LEAN
LANGUAGE_COOKIE_NAME = "continuity_language"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_SECURE = IS_PUBLIC_OVER_TLS
USE_TZ = True
TIME_ZONE = "UTC"
LOGIN_URL = "/admin/login/"
LOGIN_REDIRECT_URL = "/admin/"  # after a sign-in whose `next` is missing or another site's
# Whether `manage.py admin_link` works. Off by default with DATABASE_URL: on a shared server not
# every user with a shell may sign in to the admin.
ONE_TIME_LOGIN = env.bool("CONTINUITY_ONE_TIME_LOGIN", EMBEDDED)

# --- e-mail about what waits for a person (docs/confirmations.md) ---------------------------------
_mail = mail_settings(env)
EMAIL_BACKEND = _mail["EMAIL_BACKEND"]
EMAIL_HOST = _mail.get("EMAIL_HOST", "")
EMAIL_PORT = _mail.get("EMAIL_PORT") or 25
EMAIL_HOST_USER = _mail.get("EMAIL_HOST_USER") or ""
EMAIL_HOST_PASSWORD = _mail.get("EMAIL_HOST_PASSWORD") or ""
EMAIL_USE_TLS, EMAIL_USE_SSL = _mail.get("EMAIL_USE_TLS", False), _mail.get("EMAIL_USE_SSL", False)
EMAIL_FILE_PATH = _mail.get("EMAIL_FILE_PATH")
EMAIL_TIMEOUT = _mail.get("EMAIL_TIMEOUT")
DEFAULT_FROM_EMAIL = _mail.get("DEFAULT_FROM_EMAIL", "continuity@localhost")
WAITING_EMAIL_TO: list[str] = _mail["WAITING_EMAIL_TO"]

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["decisions.rest_base.drf.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["decisions.rest_base.drf.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["decisions.rest_base.drf.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["decisions.rest_base.drf.GatedJSONParser"],
    "DEFAULT_THROTTLE_CLASSES": ["decisions.rest_base.drf.TokenThrottle"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "config.api_errors.handle",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Continuity API",
    "DESCRIPTION": "Submit runs to Continuity, follow them, and read their results.",
    "VERSION": "1.1.0",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    # Without a public URL: where the document was fetched.
    "SERVERS": [{"url": PUBLIC_URL or "/"}],
    "SWAGGER_UI_SETTINGS": {"persistAuthorization": True, "displayRequestDuration": True},
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}


def _static(path: str) -> Callable[[HttpRequest], str]:
    """Return the function that Unfold calls for the URL; it would try to import a plain text."""

    def url(request: HttpRequest) -> str:
        from django.templatetags.static import static  # heavy: mcp_stdio starts without it

        return static(path)

    return url


# The dotted names are functions. The primary color is indigo, because Unfold's purple marks what
# waits for a person.
UNFOLD = {
    "SITE_TITLE": "Continuity",
    "SITE_HEADER": "Continuity",
    "SITE_SYMBOL": "all_inclusive",
    "SITE_URL": None,
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": _static("continuity/mark.svg")}
    ],
    "STYLES": [
        _static("continuity/admin.css"),
        _static("continuity/runs.css"),
        _static("continuity/run_list.css"),
        _static("continuity/shown.css"),
    ],
    "SCRIPTS": [
        "decisions.pages.languages.script_url",
        _static("continuity/shell.js"),
        _static("continuity/changes.js"),
        _static("continuity/run_list.js"),
        _static("continuity/refresh.js"),
        _static("continuity/admin.js"),
    ],
    "GLOBAL_CALLBACK": "decisions.admin.sign_in.site_context",
    "DASHBOARD_CALLBACK": "runs.admin.dashboard.dashboard",
    "SIDEBAR": {"navigation": "runs.admin.navigation.navigation", "show_all_applications": False},
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": False,
    "COLORS": {
        "primary": {
            "50": "oklch(96.2% .018 272.314)",
            "100": "oklch(93% .034 272.788)",
            "200": "oklch(87% .065 274.039)",
            "300": "oklch(78.5% .115 274.713)",
            "400": "oklch(67.3% .182 276.935)",
            "500": "oklch(58.5% .233 277.117)",
            "600": "oklch(51.1% .262 276.966)",
            "700": "oklch(45.7% .24 277.023)",
            "800": "oklch(39.8% .195 277.366)",
            "900": "oklch(35.9% .144 278.697)",
            "950": "oklch(25.7% .09 281.288)",
        }
    },
}

# --- logs: one JSON object per line on stderr; stdout is for MCP and for command output ----------
LOG_LEVEL = env.str("CONTINUITY_LOG_LEVEL", "WARNING" if IS_MCP_STDIO else "INFO")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "redact": {"()": "decisions.foundation.security.logs.RedactSecrets"},
        "refusals": {"()": "decisions.foundation.security.logs.WithoutRefusals"},
    },
    "formatters": {"json": {"()": "decisions.foundation.security.logs.JSONLines"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "json",
            "filters": ["refusals", "redact"],
        }
    },
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        # A connection that breaks is logged once, by runs.worker.receiver.
        "celery.worker.consumer.consumer": {"level": logging.CRITICAL + 1},
        "celery": {"level": "WARNING"},  # else two lines for each wake-up
        # On finer levels these log whole requests, with signatures and prompts, and they would mix
        # with the output of `manage.py doctor`.
        **{
            name: {"level": "WARNING"}
            for name in (
                "boto3",
                "botocore",
                "urllib3",
                "httpx2",
                "httpcore2",
                "openai",
                "anthropic",
            )
        },
    },
}
