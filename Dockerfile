# A container image of the collector: `make image`, described in docs/install.md.
#
# Compiling happens on the machine's own architecture, whatever the image is for. Nothing of the first image reaches
# the second but the binaries, the certificates of authorities, and an empty folder.

# Both can be replaced, for example where there is no registry: the first needs Go and the certificates of authorities,
# the second nothing at all. The digest is that of the image for all platforms; a registry that has other bytes under it
# cannot answer. For a new version of Go, take the one that
# `docker buildx imagetools inspect golang:1.26.8` prints.
ARG GO_IMAGE=golang:1.26.8@sha256:0f063af2d465d8dcae54cce04278ada488b96f77b42449c8d071e47d016cc65a
ARG BASE_IMAGE=scratch

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
ARG TARGETOS
ARG TARGETARCH
# How modules are fetched is the place's choice: without these, Go's defaults.
ARG GOPROXY
ARG GOSUMDB
ARG GOFLAGS
# Kept between builds by builders that can. Elsewhere they may be folders that the builder is given.
ARG GOMODCACHE=/cache/mod
ARG GOCACHE=/cache/build
ARG VERSION
# Anything here, and the image has the slim build.
ARG SLIM
WORKDIR /src
COPY . .
# As `make build` does it.
RUN --mount=type=cache,target=/cache \
    CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH} \
    go -C cmd/otelcol-profiles build -trimpath -buildvcs=false -ldflags='-s -w -funcalign=16' -tags=grpcnotrace${SLIM:+,slim} -o /out/otelcol-profiles . && \
    CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH} \
    go build -trimpath -buildvcs=false -ldflags="-s -w -X main.toolVersion=${VERSION}" -tags=grpcnotrace -o /out/profiletool ./cmd/profiletool && \
    go run ./internal/build/notice -C cmd/otelcol-profiles,cmd/profiletool -tags=grpcnotrace -texts > /out/NOTICE && \
    mkdir /out/state

FROM ${BASE_IMAGE}
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/otelcol-profiles /otelcol-profiles
COPY --from=build /out/profiletool /profiletool
COPY LICENSE /licenses/
COPY --from=build /out/NOTICE /licenses/NOTICE
COPY config/*.yaml /etc/otelcol-profiles/
COPY config/targets /etc/otelcol-profiles/targets/
COPY config/standalone.yaml /etc/otelcol-profiles/config.yaml

# Queues and output files: the one place that is written to, so that the root file system can be read-only.
COPY --from=build --chown=65532:65532 /out/state /var/lib/otelcol-profiles
VOLUME /var/lib/otelcol-profiles
WORKDIR /var/lib/otelcol-profiles

# By number, so that Kubernetes can see that it is not root.
USER 65532:65532

# From other machines and containers, where the files in config/ have localhost; and memory as the container's limit
# allows, where they have a number of MiB.
ENV OTLP_GRPC_ENDPOINT=:4317 \
    OTLP_HTTP_ENDPOINT=:4318 \
    PPROF_ENDPOINT=:4040 \
    SPLUNK_GRPC_ENDPOINT=:4327 \
    SPLUNK_HTTP_ENDPOINT=:4328 \
    SPLUNK_HEC_ENDPOINT=:8088 \
    HEALTH_ENDPOINT=:13133 \
    METRICS_HOST=0.0.0.0 \
    PAGE_MAX_BYTES=134217728 \
    SCRAPE_TARGETS=/etc/otelcol-profiles/targets/*.yaml \
    MEMORY_LIMIT_MIB=0 \
    MEMORY_LIMIT_PERCENTAGE=80
EXPOSE 4040 4317 4318 4327 4328 8088 8888 13133

ENTRYPOINT ["/otelcol-profiles"]
CMD ["--config", "/etc/otelcol-profiles/config.yaml"]

ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="otelcol-profiles" \
      org.opencontainers.image.description="OpenTelemetry Collector distribution for continuous profiling" \
      org.opencontainers.image.licenses="Apache-2.0 AND GPL-2.0-only" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
