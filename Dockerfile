# The image of gate-controller: one static program, and nothing to start but that.
#
#   docker build --build-arg REVISION="$(git rev-parse HEAD)" --tag gate-controller:0.1.0 .
#
# The two base images are pinned by version tag. A tag can be moved, so a release gives digests (why
# they do not stand here: docs/design/2026-11-22-what-is-built-in-from-elsewhere.md):
#
#   docker build --build-arg BUILD_IMAGE=docker.io/library/rust@sha256:… \
#                --build-arg BASE_IMAGE=gcr.io/distroless/static-debian13@sha256:… …
ARG BUILD_IMAGE=docker.io/library/rust:1.95.0-alpine3.23
ARG BASE_IMAGE=gcr.io/distroless/static-debian13:nonroot

# Alpine's toolchain links musl, statically, on amd64 and arm64 alike. A static glibc would still
# look for its name service modules at run time, and the last image has none. The image brings the
# C compiler that aws-lc needs.
FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY crds/ crds/
COPY core/ core/
COPY egress/ egress/
COPY watching/ watching/
COPY clusters/ clusters/
COPY gatekeepers/ gatekeepers/
COPY gate-controller/ gate-controller/
# Not built, but members of the workspace: cargo reads their manifests.
COPY forges/ forges/
COPY cli/ cli/
COPY tests/ tests/
COPY xtask/ xtask/
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,target=/src/target,sharing=locked \
    cargo build --locked --profile dist --package gate-controller --bin gate-controller && \
    install -D target/dist/gate-controller /out/gate-controller
# A program that asks for a dynamic loader would build, and then not start.
RUN readelf --program-headers /out/gate-controller > /out/headers && \
    ! grep INTERP /out/headers

# Certificate authorities, a user, and no shell.
FROM ${BASE_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="gate-controller" \
      org.opencontainers.image.description="The controller of Sluice, which decides when a change may go out, and says why" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /out/gate-controller /gate-controller
USER 65532:65532
# Metrics, and health.
EXPOSE 8080 9440
ENTRYPOINT ["/gate-controller"]
