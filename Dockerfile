# The service without a database: DATABASE_URL and REDIS_URL name PostgreSQL and Redis.
# See docs/deploy.md, and compose.yaml for a complete site.

FROM python:3.11-slim-bookworm AS packages
RUN python -m venv /opt/portcullis
COPY requirements.txt /tmp/requirements.txt
# Wheels only, so that no compiler is needed.
RUN /opt/portcullis/bin/pip install --no-cache-dir --require-hashes \
    --only-binary :all: --requirement /tmp/requirements.txt

FROM python:3.11-slim-bookworm
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin portcullis
COPY --from=packages /opt/portcullis /opt/portcullis
ENV PATH=/opt/portcullis/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HOST=0.0.0.0 \
    PORT=8000 \
    VAR_DIR=/var/lib/portcullis
WORKDIR /srv/portcullis
COPY . .
# This command signs nothing. Without a key, it would generate one and store it in the image.
RUN python -m compileall -q . && \
    SECRET_KEY=unused python manage.py collectstatic --no-input --verbosity 0

# A numeric id, so that Kubernetes can verify `runAsNonRoot`.
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=4s --start-period=60s --retries=3 CMD \
    ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['PORT'] + '/livez', timeout=3)"]
ENTRYPOINT ["python", "manage.py"]
CMD ["web"]
