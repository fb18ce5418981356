"""The reference docker-runner (S3): a separate program that executes tool calls sent by a gateway.

    command_line.py   options and their checks
    server.py         uvicorn on one socket
    app.py            HTTP: /health, /tools and /execute
    catalogue.py      the tools by name; tools/ has one file per family
    isolation/        isolation of commands, one file per method

The runner has no database, runs or users: the gateway decides who may call what. Nothing is stored
between calls, so several instances may serve one address.
"""
