# The service with its bundled models. Not built yet: no container engine was at hand where this was written.
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY encoders encoders
COPY rerank rerank
COPY indexers indexers
COPY retrieval retrieval
COPY proto proto
RUN python -m venv /opt/headrace && /opt/headrace/bin/pip install --no-cache-dir .

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /data headrace && install -d -o headrace -g headrace /data
COPY --from=build /opt/headrace /opt/headrace
ENV PATH=/opt/headrace/bin:$PATH PYTHONUNBUFFERED=1 HEADRACE_DATA__FOLDER=/data
USER headrace
WORKDIR /data
VOLUME /data
EXPOSE 50051
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["headrace", "health", "--server", "127.0.0.1:50051"]
ENTRYPOINT ["headrace"]
CMD ["serve"]
