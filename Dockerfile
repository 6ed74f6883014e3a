# docker build -t driftsack . && docker run -p 8787:8787 -v driftsack:/data driftsack
FROM python:3.12-slim
WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src ./src
RUN pip install --no-cache-dir --constraint constraints.txt '.[service,otel]' \
    && useradd --create-home driftsack && mkdir /data /kernels && chown driftsack /data /kernels
ENV NUMBA_CACHE_DIR=/kernels DRIFTSACK_STORE=/data/driftsack.db DRIFTSACK_HOST=0.0.0.0 DRIFTSACK_KEY_FILE=/data/admin.key
USER driftsack
RUN driftsack compile Adaptive LinearBwK SlidingWindowUCB
VOLUME /data
EXPOSE 8787
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8787/healthz', timeout=3)"]
CMD ["driftsack", "serve"]
