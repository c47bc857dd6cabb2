#!/usr/bin/env bash
# What the browsers of this host take right now, and so how many of their kind it has room for: run it
# while they do what yours will do (deploy/size.sh [SAMPLES], one a second or so; default 10).
set -euo pipefail

samples=${1:-10}
label=browser-session-service.workload
for _ in $(seq "$samples"); do
  ids=$(docker ps -q --filter "label=$label")
  [ -n "$ids" ] || { echo 'no browser runs on this host' >&2; exit 1; }
  # shellcheck disable=SC2086
  docker stats --no-stream --format '{{.MemUsage}} {{.CPUPerc}}' $ids
done | awk -v cores="$(nproc)" -v gib="$(awk '/^MemTotal/ { print $2 / 1048576 }' /proc/meminfo)" '
  function mib(text) {
    if (text ~ /GiB$/) return text * 1024
    if (text ~ /KiB$/) return text / 1024
    return text + 0
  }
  { count += 1; memory += mib($1); cpu += $NF + 0; if (mib($1) > most) most = mib($1) }
  END {
    each = memory / count; share = cpu / count / 100
    printf "a browser takes %.0f MiB (most %.0f MiB) and %.2f cores, of %d readings\n", each, most, share, count
    printf "per GiB: %.1f browsers; per core: %s\n", 1024 / each, share < 0.005 ? "idle ones take none" : sprintf("%.1f browsers", 1 / share)
    byMemory = int((gib - 2) * 1024 / most); byCpu = share < 0.005 ? byMemory : int(cores * 0.8 / share)
    printf "this host (%.0f GiB, %d cores), less 2 GiB and a fifth of its cores: POOL_MAX=%d\n", gib, cores, byMemory < byCpu ? byMemory : byCpu
  }'
