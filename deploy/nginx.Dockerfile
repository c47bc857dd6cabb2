# The proxy in front of a cluster. Its configuration and its certificate come from volumes.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends nginx-light \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log
EXPOSE 8443
STOPSIGNAL SIGQUIT
CMD ["nginx", "-c", "/etc/nginx/service.conf", "-g", "daemon off;"]
