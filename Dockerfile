# One image for every part: web, worker, scheduler, docker-runner (docs/operations.md).
# Built from names, versions and hashes alone; the builder's own index and mirror settings are used.
FROM python:3.11-slim-bookworm AS packages
COPY requirements.lock /tmp/requirements.lock
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --no-deps --require-hashes -r /tmp/requirements.lock

FROM python:3.11-slim-bookworm
# A browser with letters for its screenshots, Chinese ones too, and fc-list, with which `manage.py
# doctor` looks for them (fontconfig); what its driver needs (libatomic1); a first process that buries
# the others (tini); the runner's sandbox; pg_dump for `manage.py backup`.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        chromium-headless-shell fontconfig fonts-dejavu-core fonts-wqy-microhei libatomic1 \
        tini bubblewrap postgresql-client \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --create-home --shell /usr/sbin/nologin continuity \
    && install -d -o continuity -g continuity -m 0700 /var/lib/continuity /srv/work
COPY --from=packages /opt/venv /opt/venv
COPY manage.py requirements.lock /app/
COPY config /app/config
COPY decisions /app/decisions
COPY artifacts /app/artifacts
COPY runners /app/runners
COPY runs /app/runs
COPY mcp_server /app/mcp_server
RUN /opt/venv/bin/python -m compileall -q /app
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    CONTINUITY_HOME=/var/lib/continuity \
    CONTINUITY_CHROMIUM=/usr/bin/chromium-headless-shell
WORKDIR /app
# Not root: Chromium refuses to have its sandbox on as root.
USER continuity
VOLUME ["/var/lib/continuity"]
EXPOSE 8000 18081
# Of the web; compose.yaml has those of the other parts. A host name that is refused is an answer too.
HEALTHCHECK --interval=15s --timeout=6s --start-period=60s \
    CMD ["python", "-c", "from http.client import HTTPConnection as C; c = C('127.0.0.1', 8000, timeout=5); c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status >= 500)"]
ENTRYPOINT ["tini", "--", "python", "manage.py"]
CMD ["serve", "--host", "0.0.0.0"]
