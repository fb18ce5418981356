# One image for all services: web, worker, scheduler, docker-runner (docs/operations.md).
# Packages are pinned by version and hash, and come from the builder's configured index and mirrors.
FROM python:3.11-slim-bookworm AS packages
COPY requirements.lock /tmp/requirements.lock
# No pip in the environment; of the AWS SDK only the services that an S3 client calls; no sources of
# translations and compiled modules, no type stubs.
RUN python -m venv --without-pip /opt/venv \
    && python -m venv /opt/installer \
    && /opt/installer/bin/pip --python /opt/venv/bin/python install --no-cache-dir --no-deps \
        --require-hashes -r /tmp/requirements.lock \
    && cd /opt/venv/lib/python3.11/site-packages \
    && find botocore/data -mindepth 1 -maxdepth 1 -type d \
        ! -name s3 ! -name sts ! -name 'sso*' ! -name signin -exec rm -rf {} + \
    && find . \( -name '*.po' -o -name '*.pyi' -o -name '*.c' -o -name '*.pyx' \) -delete
# pg_dump, pg_restore and psql without the Perl scripts that Debian wraps them in.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql-client

FROM python:3.11-slim-bookworm
# Chromium with Latin and Chinese fonts for screenshots; fontconfig, whose fc-list `manage.py doctor`
# uses; libatomic1 for Playwright's driver; tini, which reaps zombie processes; bubblewrap for the
# runner's sandbox; libpq5 for `manage.py backup`.
# Chromium draws with a library of its own: without those of graphics cards (LLVM, Z3, Mesa's
# drivers) and those that debug Vulkan, and without other languages, it takes 230 MB less.
RUN for path in '*/libLLVM-*' '*/libz3.so*' '*/x86_64-linux-gnu/dri/*' '*/aarch64-linux-gnu/dri/*' \
        '*/libVkLayer_*' '*/libVkICD_*' /usr/share/locale/* /usr/share/doc/* /usr/share/man/*; \
    do echo "path-exclude $path"; done > /etc/dpkg/dpkg.cfg.d/continuity \
    && apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        chromium-headless-shell fontconfig fonts-dejavu-core fonts-wqy-microhei libatomic1 libpq5 \
        tini bubblewrap \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old \
    && useradd --uid 10001 --user-group --create-home --shell /usr/sbin/nologin continuity \
    && install -d -o continuity -g continuity -m 0700 /var/lib/continuity /srv/work
COPY --from=packages /usr/lib/postgresql/15/bin/pg_dump /usr/lib/postgresql/15/bin/pg_restore \
    /usr/lib/postgresql/15/bin/psql /usr/local/bin/
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
EXPOSE 8000 18081
# For the web service; compose.yaml has those of the others. A refused Host header counts as healthy.
HEALTHCHECK --interval=15s --timeout=6s --start-period=60s \
    CMD ["python", "-c", "from http.client import HTTPConnection as C; c = C('127.0.0.1', 8000, timeout=5); c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status >= 500)"]
ENTRYPOINT ["tini", "--", "python", "manage.py"]
CMD ["serve", "--host", "0.0.0.0"]
