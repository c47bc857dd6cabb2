/** What the checks of the isolation run in containers of the browser's image. */

/**
 * Tries all targets at once, each within its seconds, and prints a line for each: "protocol address
 * port: result". UDP sees a refusal only when it sends again, and Linux limits these refusals to
 * one per second and sender.
 */
export const TRY_ALL = `
try_tcp() { exec 3<>"/dev/tcp/$1/$2"; }
try_udp() {
  exec 3<>"/dev/udp/$1/$2"
  while echo >&3; do sleep 0.1; done
  return 1
}
export -f try_tcp try_udp
for target in "$@"; do
  (
    read -r protocol host port within <<<"$target"
    said=$(timeout $within bash -c "try_$protocol $host $port" 2>&1)
    case $? in
      0) said=reached ;;
      124) said=silence ;;
      *) said=\${said%%$'\\n'*} said=\${said##*: } ;;
    esac
    echo "$protocol $host $port: $said"
  ) &
done
wait
`;

/** The link as in deploy/browser/entrypoint.sh; a VNC server stands for Chromium too (9222). */
export const LISTEN = `
(umask 077 && echo "gateway:$LINK_KEY" >"$HOME/link-key")
Xtigervnc :0 -geometry 64x64 -nolisten tcp -noreset -SecurityTypes None \\
  -rfbport 9222 -localhost -rfbunixpath "$HOME/vnc" >/dev/null 2>&1 &
vnc=$!
stunnel /usr/local/lib/browser/link.conf &
link=$!
for port in 9222 9223 5900; do
  until grep -q "$(printf ':%04X .* 0A ' $port)" /proc/net/tcp; do
    kill -0 $vnc && kill -0 $link || exit 1
    sleep 0.01
  done
done
echo listening
wait -n
`;
