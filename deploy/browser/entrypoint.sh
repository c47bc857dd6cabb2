# Runs the programs of one browser. The container ends as soon as one of them ends, so that its
# provisioner notices at once.
#
#   VNC_PASSWORD   8 characters; empty: no X server, for --headless
#   SCREEN_SIZE    WIDTHxHEIGHT, 1280x800 by default
#   arguments      Chromium's
#
# CDP is on port 9223, forwarded by socat: Chromium listens on loopback only, whatever its flags.
#
# Exit code 0 means that the user closed Chromium; the last line of the output says so too.
set -u

children=()
if [ -n "${VNC_PASSWORD:-}" ]; then
  password=$VNC_PASSWORD
  password_file=$HOME/vnc-password
  unset VNC_PASSWORD
  # Every viewer comes from the gateway's address: the blacklist would block all for one.
  Xtigervnc :0 -geometry "${SCREEN_SIZE:-1280x800}" -depth 24 -nolisten tcp -noreset \
    -xkbdir /usr/local/lib/browser/xkb \
    -rfbport 5900 -SecurityTypes VncAuth -PasswordFile "$password_file" \
    -UseBlacklist=0 -AlwaysShared -desktop browser -Log '*:stderr:0' >/dev/null &
  children+=($!)
  export DISPLAY=:0
  # The X server reads the file when a viewer connects.
  (umask 077 && tigervncpasswd -f <<<"$password" >"$password_file")
  unset password
fi

socat TCP-LISTEN:9223,fork,reuseaddr,nodelay TCP:127.0.0.1:9222,nodelay &
children+=($!)

# Whether the X server accepts connections: /proc/net/unix flags a listening socket with 00010000.
x_listens() {
  local flags path
  while read -r _ _ _ flags _ _ _ path; do
    [ "$path" = /tmp/.X11-unix/X0 ] && [ "$flags" = 00010000 ] && return
  done </proc/net/unix
  return 1
}
# Chromium exits if it finds no X server.
while [ -n "${DISPLAY:-}" ] && kill -0 "${children[0]}" 2>/dev/null && ! x_listens; do
  sleep 0.002
done

# Not /usr/bin/chromium: that is a script, which adds flags and the start of a shell.
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
# Chromium exits with 0 after a SIGTERM and after the end of its X server too; its profile tells.
if [ "$name" = Chromium ] && [ "$status" = 0 ] &&
  grep -qs '"exit_type":"Normal"' /tmp/profile/Default/Preferences; then
  echo 'Chromium was closed' >&2
  exit 0
fi
echo "$name ended with $status" >&2
[ "$status" != 0 ] || status=1
exit "$status"
