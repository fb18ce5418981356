"""The reference docker-runner (S3): a program of its own that executes tools which a gateway sends.

    command_line.py   what was asked for, and what speaks against it
    serving.py        uvicorn, on one socket
    app.py            HTTP: /health and /execute, the call from its first byte to its last
    catalogue.py      the tools by name; tools/ has them, one family a file
    isolation/        how command lines are kept apart, one way a file

It knows no database, no run and no user: a gateway decides who may call what, this executes it in
one folder and forgets it. Nothing is kept between calls, so several copies may stand behind one
address.
"""
