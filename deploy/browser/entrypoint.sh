# The programs of one browser. Any of them that ends, ends all: the container is gone with it, and
# whoever watches it knows at once.
#
#   VNC_PASSWORD   8 characters; empty: no X server, for --headless
#   SCREEN_SIZE    WIDTHxHEIGHT, 1280x800 by default
#   arguments      Chromium's
#
# CDP is on port 9223: Chromium itself listens on loopback only, whatever it is told.
#
# Exit code 0 means that its user closed Chromium, which the last line of its output says, too.
set -u

children=()
if [ -n "${VNC_PASSWORD:-}" ]; then
  password_file=$HOME/vnc-password
  (umask 077 && tigervncpasswd -f <<<"$VNC_PASSWORD" >"$password_file")
  unset VNC_PASSWORD
  # Every viewer comes from the gateway's address: the black list would lock all of them out for one.
  Xtigervnc :0 -geometry "${SCREEN_SIZE:-1280x800}" -depth 24 -nolisten tcp -noreset \
    -xkbdir /usr/local/lib/browser/xkb \
    -rfbport 5900 -SecurityTypes VncAuth -PasswordFile "$password_file" \
    -UseBlacklist=0 -AlwaysShared -desktop browser -Log '*:stderr:0' >/dev/null &
  children+=($!)
  export DISPLAY=:0
fi

socat TCP-LISTEN:9223,fork,reuseaddr,nodelay TCP:127.0.0.1:9222,nodelay &
children+=($!)

# Not /usr/bin/chromium: that is a script, which adds flags and a shell's start.
/usr/lib/chromium/chromium --remote-debugging-port=9222 --user-data-dir=/tmp/profile "$@" \
  >/dev/null &
chromium=$!
children+=("$chromium")

trap 'echo "SIGTERM ended the container" >&2; kill -TERM "$chromium"; wait "$chromium"; exit 143' TERM
wait -n -p ended "${children[@]}"
status=$?
case $ended in
  "$chromium") name=Chromium ;;
  "${children[0]}") [ -n "${DISPLAY:-}" ] && name='The X server' || name=socat ;;
  *) name=socat ;;
esac
# Chromium exits with 0 after a SIGTERM, too, and after the end of its X server: its profile tells.
if [ "$name" = Chromium ] && [ "$status" = 0 ] &&
  grep -qs '"exit_type":"Normal"' /tmp/profile/Default/Preferences; then
  echo 'Chromium was closed' >&2
  exit 0
fi
echo "$name ended with $status" >&2
[ "$status" != 0 ] || status=1
exit "$status"
