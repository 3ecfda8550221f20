# Everything: `docker build -t parlour .` For models of services alone, without the built-in one, recognition of text in
# pictures and running of code: `docker build --build-arg PACKAGES=requirements-service.lock -t parlour .`
# Any base with Python 3.11 or newer as `python3` will do; docs/self-hosting.md names how to pin one by its digest.
ARG BASE=python:3.11-slim

# The packages are built into an environment of their own first; of what builds them nothing comes along.
FROM ${BASE} AS packages
ARG PACKAGES=requirements.lock
# Several machines need more: deploy/grown/compose.yaml names it.
ARG MORE_PACKAGES=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app
# They come first: they change less often than the code. What only builds Parlour's wheel is left out.
COPY ${PACKAGES} set_up.py ./
RUN grep -v -E '^(hatchling|pathspec|pluggy|trove-classifiers)==' "${PACKAGES}" > packages.lock \
    && python3 -m venv /opt/parlour \
    && /opt/parlour/bin/python -m pip install --no-compile 'pip>=25.3' \
    && /opt/parlour/bin/python -m pip install --no-compile --no-deps -r packages.lock \
    && if [ -n "$MORE_PACKAGES" ]; then /opt/parlour/bin/python -m pip install --no-compile $MORE_PACKAGES \
    && /opt/parlour/bin/python -m pip list --format=freeze > packages.lock; fi \
    && /opt/parlour/bin/python set_up.py slim
COPY pyproject.toml README.md LICENSE ./
COPY .ci/sbom.py .ci/
COPY core core
COPY webui webui
COPY assets assets
# Nothing can write bytecode later: what a start, a document and a cell import is compiled here.
RUN /opt/parlour/bin/python set_up.py compile \
    && /opt/parlour/bin/python .ci/sbom.py packages.lock /var/lib/dpkg/status > sbom.cdx.json \
    && rm -r .ci set_up.py packages.lock "${PACKAGES}"

FROM ${BASE}
LABEL org.opencontainers.image.title="Parlour" \
      org.opencontainers.image.description="A chat with models, documents and tools that runs on your own machine" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.documentation="docs/self-hosting.md" \
      parlour.sbom="/app/sbom.cdx.json"
# Nothing is written but below /data and /tmp, so the rest can be mounted read-only.
ENV PATH=/opt/parlour/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HOME=/tmp MPLCONFIGDIR=/tmp/matplotlib \
    PARLOUR_HOST=0.0.0.0 PARLOUR_PORT=7860 PARLOUR_ACCOUNTS=guests PARLOUR_HOME=/data XDG_CACHE_HOME=/data/cache
# OpenMP, which the built-in model computes with.
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && apt-get clean && rm -rf /var/lib/apt/lists/*
RUN useradd --no-create-home --uid 1000 parlour && mkdir -p /data && chown parlour:parlour /data
COPY --from=packages /opt/parlour /opt/parlour
COPY --from=packages /app /app
WORKDIR /app

USER parlour
VOLUME /data
EXPOSE 7860
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['PARLOUR_PORT'] + '/healthz', timeout=4)"]
CMD ["python", "-m", "webui"]
