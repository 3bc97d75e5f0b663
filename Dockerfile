# quire-server as a container: docker build -t quire . ; the model is mounted at /models, or built in:
#   docker build --build-arg MODEL=smollm2-135m-q4_1 -t quire .
#   docker run --read-only -p 50051:50051 [-v ~/.cache/quire/models:/models:ro] quire [FLAGS OF quire-server]

FROM debian:trixie-slim AS build
WORKDIR /src
# Alone first, so that a change of the sources does not install everything again.
COPY scripts/setup scripts/setup
RUN scripts/setup
COPY . .
RUN scripts/build release quire-server quire && strip build/release/bin/quire-server build/release/bin/quire
# A NAME that scripts/fetch_model knows; empty leaves /models to be mounted.
ARG MODEL=
RUN mkdir /models && if [ -n "$MODEL" ]; then QUIRE_MODEL_DIR=/models scripts/fetch_model "$MODEL"; fi

FROM debian:trixie-slim
LABEL org.opencontainers.image.title="quire" \
  org.opencontainers.image.description="LLM inference server for CPUs, over gRPC and HTTP, under one memory budget" \
  org.opencontainers.image.licenses="Apache-2.0"
RUN apt-get update -qq \
  && apt-get install -y -qq --no-install-recommends \
    libabsl20240722 libcpp-httplib0.18 libprometheus-cpp-core1.0 libssl3t64 libdnnl3.6 libfmt10 libgomp1 libgrpc++1.51t64 libhwy1t64 \
    libprotobuf32t64 libspdlog1.15 \
  && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/build/release/bin/quire-server /src/build/release/bin/quire /usr/local/bin/
COPY --from=build /models /models
# A runtime library missing above ends the build here, not the first start.
RUN quire-server --version && quire --version
# By number, so that an orchestrator can see that it is not root.
USER 10001:10001
EXPOSE 50051 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=60s CMD ["quire", "health", "--timeout", "5", "--address", "127.0.0.1:50051"]
ENTRYPOINT ["quire-server"]
CMD ["--grpc-listen", "0.0.0.0:50051", "--allow-unauthenticated", "--model", "/models/SmolLM2-135M-Instruct.Q4_1.gguf"]
