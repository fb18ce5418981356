"""Base classes of all REST views: authentication, throttling, error bodies, OpenAPI."""
