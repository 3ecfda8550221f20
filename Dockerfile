FROM python:3.11-slim

ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PARLOUR_HOST=0.0.0.0 PARLOUR_PORT=7860 PARLOUR_ACCOUNTS=guests PARLOUR_HOME=/data XDG_CACHE_HOME=/data/cache HOME=/home/parlour

# OpenMP, which the built-in model computes with.
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 1000 parlour && mkdir -p /data && chown parlour:parlour /data
WORKDIR /app

# The packages first: they change less often than the code.
COPY requirements.lock ./
RUN pip install --no-deps -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY core core
COPY webui webui
COPY assets assets
RUN python -m compileall -q core webui

USER parlour
VOLUME /data
EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['PARLOUR_PORT'] + '/healthz', timeout=4)"]
CMD ["python", "-m", "webui"]
