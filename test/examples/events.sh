#!/bin/sh
# An organization's events with nothing but curl, from the first on: sh events.sh <url> <key>
# Where the connection is lost it goes on behind the last event that was done with.
url=$1 key=$2 done=${3:-events.done}
[ -f "$done" ] || echo 0 > "$done"
while :; do
  curl -sN "$url/api/events" -H "Authorization: Bearer $key" -H "Last-Event-ID: $(cat "$done")" |
    while IFS= read -r line; do
      case $line in
        'id: '*) id=${line#id: } ;;
        'event: '*) type=${line#event: } ;;
        'data: '*) # ${line#data: } is the CloudEvent
          echo "$id $type"
          echo "$id" > "$done" ;;
      esac
    done
  sleep 1
done
