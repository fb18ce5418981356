"""The wiring on top: settings, urls, asgi, celery. Imported by nobody."""
