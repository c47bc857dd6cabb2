# Sets the packet rules of the browsers' network where the service itself may not: run once on the
# host's network, with NET_ADMIN as its only capability.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends nftables \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
ENTRYPOINT ["nft"]
