"""The project configuration: settings, URLs, ASGI, Celery, health, metrics. No part imports it."""
