#!/usr/bin/env bash
# Ends what up.sh has brought up on this host, and its browsers, which outlive the service otherwise.
# Data and secrets stay for the next up.sh.
#   deploy/down.sh [single|cluster] [more arguments of `docker compose down`, as --volumes]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

profile=${1:-single}
case $profile in
  single | cluster) shift || true ;;
  *) echo 'usage: down.sh [single|cluster]' >&2; exit 2 ;;
esac

setting() { # NAME: of the environment, else of .env
  printf '%s' "${!1:-$(sed -n "s/^$1=//p" .env | tail -n 1)}"
}
compose() {
  if docker compose version >/dev/null 2>&1; then docker compose "$@"; else docker-compose "$@"; fi
}
export SECRETS_DIR="${SECRETS_DIR:-$PWD/secrets}"
export DOCKER_GID="${DOCKER_GID:-0}"

compose --profile "$profile" --profile tools down "$@"
# The browsers of this installation are on its network: their sessions end at the next start.
network=$(setting DOCKER_NETWORK)
browsers=$(docker ps -aq --filter label=owner=browser-session-service --filter "network=$network")
[ -z "$browsers" ] || docker rm -fv $browsers >/dev/null
if docker network inspect "$network" >/dev/null 2>&1; then docker network rm "$network" >/dev/null; fi
