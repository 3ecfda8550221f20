# The packages are built into an environment of their own first; of what builds them nothing comes along.
FROM python:3.11-slim AS packages
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
# They come first: they change less often than the code.
COPY requirements.lock ./
# Several machines need more: deploy/grown/compose.yaml names it.
ARG MORE_PACKAGES=""
RUN python -m venv /opt/parlour && /opt/parlour/bin/python -m pip install --no-deps -r requirements.lock \
    && if [ -n "$MORE_PACKAGES" ]; then /opt/parlour/bin/python -m pip install $MORE_PACKAGES; fi

FROM python:3.11-slim
LABEL org.opencontainers.image.title="Parlour" \
      org.opencontainers.image.description="A chat with models, documents and tools that runs on your own machine" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.documentation="docs/self-hosting.md"
# Nothing is written but below /data and /tmp, so the rest can be mounted read-only.
ENV PATH=/opt/parlour/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HOME=/tmp MPLCONFIGDIR=/tmp/matplotlib \
    PARLOUR_HOST=0.0.0.0 PARLOUR_PORT=7860 PARLOUR_ACCOUNTS=guests PARLOUR_HOME=/data XDG_CACHE_HOME=/data/cache
# OpenMP, which the built-in model computes with.
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*
RUN useradd --no-create-home --uid 1000 parlour && mkdir -p /data && chown parlour:parlour /data
WORKDIR /app
COPY --from=packages /opt/parlour /opt/parlour
COPY pyproject.toml README.md LICENSE ./
COPY core core
COPY webui webui
COPY assets assets
RUN python -m compileall -q core webui

USER parlour
VOLUME /data
EXPOSE 7860
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['PARLOUR_PORT'] + '/healthz', timeout=4)"]
CMD ["python", "-m", "webui"]
