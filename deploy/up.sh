#!/usr/bin/env bash
# Brings the service up on this host: builds its images, makes the secrets that are missing, starts
# compose.yaml. Run again after a change: what has not changed goes on running.
#   deploy/up.sh [single|cluster] [more arguments of `docker compose up`]
#   deploy/up.sh secrets      makes the secrets that are missing, and starts nothing
# Settings are in deploy/.env; what the environment says counts more.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

profile=${1:-single}
case $profile in
  single | cluster | secrets) shift || true ;;
  *) echo 'usage: up.sh [single|cluster|secrets]' >&2; exit 2 ;;
esac

setting() { # NAME: of the environment, else of .env
  printf '%s' "${!1:-$(sed -n "s/^$1=//p" .env | tail -n 1)}"
}
compose() {
  if docker compose version >/dev/null 2>&1; then docker compose "$@"; else docker-compose "$@"; fi
}

export SECRETS_DIR="${SECRETS_DIR:-$PWD/secrets}"
export SERVICE_IMAGE="${SERVICE_IMAGE:-browser-session-service}"
# Who may use the engine's socket: the provisioner joins that group.
export DOCKER_GID="${DOCKER_GID:-$(stat -c %g /var/run/docker.sock)}"

docker build -q -t "$SERVICE_IMAGE" -f Dockerfile .. >/dev/null
docker build -q -t "$SERVICE_IMAGE-nginx" -f nginx.Dockerfile . >/dev/null
mkdir -p "$SECRETS_DIR"
docker run --rm --network none --user 0 --read-only --volume "$SECRETS_DIR:/secrets" \
  "$SERVICE_IMAGE" node deploy/make-secrets.mjs /secrets "$(setting PUBLIC_HOST)"
[ "$profile" = secrets ] || compose --profile "$profile" up -d "$@"
