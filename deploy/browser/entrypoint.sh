# Runs the programs of one browser. The container ends as soon as one of them ends, so that its
# provisioner notices at once.
#
#   input          a line of 64 hexadecimal digits, the key of the TLS connections to this browser, and
#                  a line of 8 characters, the VNC password; empty: no X server, for --headless
#   SCREEN_SIZE    WIDTHxHEIGHT, 1280x800 by default
#   LANGUAGE       the locale of pages, as de_CH; en_US by default
#   EGRESS         not empty: Chromium's proxy is 127.0.0.1:3128, which the provisioner serves through the
#                  link (relay.pl)
#   arguments      Chromium's
#
# CDP is on port 9223 and VNC on port 5900, both through the link (link.conf): Chromium listens on
# loopback only, and the X server on a Unix socket. WebDriver is on port 9227: webdriver.pl starts
# chromedriver with its first connection.
#
# Exit code 0 means that the user closed Chromium; the last line of the output says so too.
set -u
# A dump of Chromium would hold its user's pages, on the node's disk.
ulimit -c 0

# Where Chromium saves what no CDP command tells it to save elsewhere.
ln -s downloads "$HOME/Downloads"

# Chromium takes the locale of its environment if there are texts of that name: those of the
# language, where the image has them, or else the English ones.
locale=${LANGUAGE:-en_US}
locale=${locale//_/-}
mkdir -p /tmp/locales
for texts in "$locale" "${locale%%-*}" en-US; do
  file=/usr/lib/chromium/texts/$texts.pak
  [ -e "$file" ] && ln -sf "$file" "/tmp/locales/$locale.pak" && break
done

# Not from the environment: each program of the container would show it in /proc.
if ! { read -t 60 -r link_key && read -t 60 -r password; }; then
  echo 'The input has no keys' >&2
  exit 1
fi
exec </dev/null
(umask 077 && echo "gateway:$link_key" >"$HOME/link-key")
unset link_key
link_conf=/usr/local/lib/browser/link.conf
if [ -n "${EGRESS:-}" ]; then
  cat "$link_conf" /usr/local/lib/browser/egress.conf >"$HOME/link.conf"
  link_conf=$HOME/link.conf
  perl /usr/local/lib/browser/relay.pl &
  relay=$!
fi
stunnel "$link_conf" &
link=$!
children=("$link" ${relay:+"$relay"})

if [ -n "$password" ]; then
  password_file=$HOME/vnc-password
  # Every viewer comes from the gateway's address: the blacklist would block all for one. The
  # gateway passes clipboards of half that length; Chromium waits for ever for one that is longer.
  Xtigervnc :0 -geometry "${SCREEN_SIZE:-1280x800}" -depth 24 -nolisten tcp -noreset \
    -xkbdir /usr/local/lib/browser/xkb \
    -rfbport -1 -rfbunixpath "$HOME/vnc" -rfbunixmode 0600 \
    -SecurityTypes VncAuth -PasswordFile "$password_file" -UseBlacklist=0 \
    -AlwaysShared -MaxCutText 2097152 -desktop browser -Log '*:stderr:0' >/dev/null &
  x_server=$!
  children+=("$x_server")
  export DISPLAY=:0
  # The X server reads the file when a viewer connects.
  (umask 077 && tigervncpasswd -f <<<"$password" >"$password_file")
  unset password
fi

# Whether the X server accepts connections: /proc/net/unix flags a listening socket with 00010000.
x_listens() {
  local flags path
  while read -r _ _ _ flags _ _ _ path; do
    [ "$path" = /tmp/.X11-unix/X0 ] && [ "$flags" = 00010000 ] && return
  done </proc/net/unix
  return 1
}
# Chromium exits if it finds no X server.
while [ -n "${DISPLAY:-}" ] && kill -0 "$x_server" 2>/dev/null && ! x_listens; do
  sleep 0.002
done

# The last one counts: a browser with a profile that is kept has it in a volume.
profile=/tmp/profile
for argument in "$@"; do
  case $argument in --user-data-dir=*) profile=${argument#*=} ;; esac
done
bash /usr/local/lib/browser/preferences.sh "$profile"

# Not /usr/bin/chromium: that is a script, which adds flags and the start of a shell.
/usr/lib/chromium/chromium --remote-debugging-port=9222 --user-data-dir="$profile" "$@" \
  >/dev/null &
chromium=$!
children+=("$chromium")

trap 'echo "SIGTERM ended the container" >&2; kill -TERM "$chromium"; wait "$chromium"; exit 143' TERM
# The link reads its key once, before it listens on 9223 (0x2407).
while kill -0 "$link" 2>/dev/null && ! grep -q ':2407 .* 0A ' /proc/net/tcp; do
  sleep 0.002
done
rm -f "$HOME/link-key"

wait -n -p ended "${children[@]}"
status=$?
case $ended in
  "$chromium") name=Chromium ;;
  "$link") name='The link' ;;
  "${relay:-none}") name='The relay' ;;
  *) name='The X server' ;;
esac
# Chromium exits with 0 after a SIGTERM and after the end of its X server too; its profile tells.
if [ "$name" = Chromium ] && [ "$status" = 0 ] &&
  grep -qs '"exit_type":"Normal"' "$profile/Default/Preferences"; then
  echo 'Chromium was closed' >&2
  exit 0
fi
echo "$name ended with $status" >&2
[ "$status" != 0 ] || status=1
exit "$status"
