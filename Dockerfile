# The one image of Palimpsest: gateway, workers, services, admin commands; which one it is, its arguments say.
# PYTHON is a Debian image of Python 3.11 by digest (k8s/README.md): python:3.11-slim-bookworm@sha256:…
ARG PYTHON

FROM ${PYTHON} AS built
WORKDIR /build
COPY constraints-server.txt pyproject.toml README.md LICENSE ./
RUN python -m venv /opt/palimpsest \
 && /opt/palimpsest/bin/pip install --no-cache-dir --require-hashes -r constraints-server.txt
COPY palimpsest palimpsest
COPY services services
COPY gateway gateway
RUN /opt/palimpsest/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
 && /opt/palimpsest/bin/python -m compileall -q /opt/palimpsest/lib

FROM ${PYTHON} AS run
ENV PATH=/opt/palimpsest/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
RUN groupadd --gid 10001 palimpsest \
 && useradd --uid 10001 --gid 10001 --home-dir /data --shell /usr/sbin/nologin palimpsest \
 && install -d -o palimpsest -g palimpsest /data
COPY --from=built /opt/palimpsest /opt/palimpsest
USER 10001:10001
WORKDIR /data
VOLUME ["/data", "/tmp"]
EXPOSE 7233 7234
CMD ["palimpsest", "gateway"]
