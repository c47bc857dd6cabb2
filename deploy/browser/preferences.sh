# Chromium's preferences, before it starts: $1 is its profile, which may be one that was kept.
# Without printing a page's print() and a person's Ctrl+P do nothing. A browser here has no printer,
# and their dialog would hold up its page, and each client's command, until somebody closes it.
# Also run by src/browsers/process/preferences.ts.
set -- "$1/Default" '"printing":{"enabled":false}'
[ -d "$1" ] || (umask 077 && mkdir -p "$1")
if [ -s "$1/Preferences" ] && [ "$(cat "$1/Preferences")" != '{}' ]; then
  # Chromium takes the last of two values of one name.
  sed -i "\$s/}[[:space:]]*\$/,$2}/" "$1/Preferences"
else
  (umask 077 && echo "{$2}" >"$1/Preferences")
fi
