#!/usr/bin/env bash
# Brings the service up on this host: builds its images, makes the secrets that are missing, renews
# the certificates that end within 60 days, starts compose.yaml. Run again after a change, and once a
# month for the certificates: what has not changed goes on running.
#   deploy/up.sh [single|cluster] [more arguments of `docker compose up`]
#   deploy/up.sh secrets      makes and renews secrets, and starts nothing
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
compose version >/dev/null 2>&1 || {
  echo 'up.sh: Docker Compose is missing: install docker-compose-v2, docker-compose-plugin or docker-compose' >&2
  exit 1
}
docker version >/dev/null 2>&1 || {
  echo 'up.sh: no Docker engine answers: start it, or join the group docker' >&2
  exit 1
}
# Who may use the engine's socket: the provisioner joins that group.
export DOCKER_GID="${DOCKER_GID:-$(stat -c %g /var/run/docker.sock)}"

# What they are built on is named, with its digest, in their Dockerfiles; npm run images:renew renews it.
docker build -q -t "$SERVICE_IMAGE" ${NODE_IMAGE:+--build-arg "NODE_IMAGE=$NODE_IMAGE"} \
  -f Dockerfile .. >/dev/null
docker build -q -t "$SERVICE_IMAGE-nginx" ${DEBIAN_IMAGE:+--build-arg "BASE=$DEBIAN_IMAGE"} \
  -f nginx.Dockerfile . >/dev/null
mkdir -p "$SECRETS_DIR"
secrets() { # prints what running parts have to be told of: trust, inside, edge
  docker run --rm --network none --user 0 --read-only --volume "$SECRETS_DIR:/secrets" \
    "$SERVICE_IMAGE" node deploy/make-secrets.mjs /secrets "$(setting PUBLIC_HOST)"
}
running() { # the profile's running parts, a name a line
  compose --profile "$profile" ps --services --filter status=running
}
well() { # PART: waits until its health check passes
  for _ in $(seq 60); do
    id=$(compose --profile "$profile" ps -q "$1")
    [ "$(docker inspect -f '{{.State.Health.Status}}' "$id")" = healthy ] && return
    sleep 2
  done
  echo "up.sh: $1 is not healthy after 2 minutes" >&2
  exit 1
}
restart() { # PART
  compose --profile "$profile" restart "$1"
  well "$1"
}
told() { # WORD...: all parts have it, so that `secrets` does not print it again
  for word in "$@"; do rm -f "$SECRETS_DIR/pending-$word"; done
}
reload() { # PART: reads its certificates again
  compose --profile "$profile" kill -s HUP "$1"
}

# Compose knows nothing before the first secrets are there; later a failure of it ends this script.
before=''
[ ! -e "$SECRETS_DIR/nats.env" ] || before=$(running)
changed=$(secrets)
if [ "$profile" = secrets ]; then
  [ -z "$changed" ] || echo "running parts have to be told of:" $changed
  exit
fi
compose --profile "$profile" up -d "$@"

# The next authority is trusted everywhere before NATS and Redis show a certificate that it signed.
# Where this script ends early, the next run begins again with the step that was not through.
if [[ $changed == *trust* ]]; then
  for part in $before; do
    case $part in
      redis | nginx) ;;
      nats*) reload "$part" ;;
      *) restart "$part" ;;
    esac
  done
  told trust
  changed=$(secrets)
fi
for part in $before; do
  case $part in
    nats-*) [[ $changed != *inside* ]] || reload "$part" ;;
    redis) [[ $changed != *inside* ]] || restart "$part" ;;
    nginx) [[ $changed != *edge* ]] || reload "$part" ;;
  esac
done
told inside edge

# What is to be done next: the address, and a key for it.
[ "$profile" = cluster ] && front=nginx bss=bss || front=service bss=bss-single
well "$front"
port=$(setting HTTPS_PORT)
[ "$port" = 443 ] && port='' || port=":$port"
cat <<TEXT
The service is at https://$(setting PUBLIC_HOST)$port
Its first organization and key:
  cd $PWD
  export SECRETS_DIR=$SECRETS_DIR DOCKER_GID=$DOCKER_GID
  docker compose --profile tools run --rm $bss orgs create --name NAME --tier pro
  docker compose --profile tools run --rm $bss keys issue --org ID --role owner --user USER
deploy/down.sh $profile ends it, its browsers too.
TEXT
