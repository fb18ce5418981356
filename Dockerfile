# One image for all services: web, worker, scheduler, docker-runner (docs/operations.md).
# Packages are pinned by version and hash, and come from the builder's configured index and mirrors.
FROM python:3.11-slim-bookworm AS packages
COPY requirements.lock /tmp/requirements.lock
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --no-deps --require-hashes -r /tmp/requirements.lock

FROM python:3.11-slim-bookworm
# Chromium with Latin and Chinese fonts for screenshots; fontconfig, whose fc-list `manage.py doctor`
# uses; libatomic1 for Playwright's driver; tini, which reaps zombie processes; bubblewrap for the
# runner's sandbox; pg_dump for `manage.py backup`.
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
COPY locale /app/locale
RUN /opt/venv/bin/python -m compileall -q /app
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    CONTINUITY_HOME=/var/lib/continuity \
    CONTINUITY_CHROMIUM=/usr/bin/chromium-headless-shell
WORKDIR /app
# Not root: Chromium does not start its sandbox as root.
USER continuity
VOLUME ["/var/lib/continuity"]
EXPOSE 8000 18081
# For the web service; compose.yaml has those of the others. A refused Host header counts as healthy.
HEALTHCHECK --interval=15s --timeout=6s --start-period=60s \
    CMD ["python", "-c", "from http.client import HTTPConnection as C; c = C('127.0.0.1', 8000, timeout=5); c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status >= 500)"]
ENTRYPOINT ["tini", "--", "python", "manage.py"]
CMD ["serve", "--host", "0.0.0.0"]
