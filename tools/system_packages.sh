#!/bin/sh
# Install what the tests need beside Python packages: Chromium, in which they drive the dashboard, and promtool, with
# which they check the alerts. Does nothing where both are there. promtool is only unpacked, into the directory that is
# given: Debian's package of Prometheus would start a server.
set -eu
bin=$1
there() { command -v "$1" > /dev/null; }
missing=
there chromium || there chromium-browser || there google-chrome || missing="chromium fonts-liberation"
[ -x "$bin/promtool" ] || there promtool || missing="$missing promtool"
[ -n "$missing" ] || exit 0
there apt-get || { echo "the tests need$(printf ' %s' $missing); install them, since there is no apt-get" >&2; exit 1; }
root=
[ "$(id -u)" = 0 ] || root=sudo
$root apt-get -qq update
for name in $missing; do
  if [ "$name" = promtool ]; then
    directory=$(mktemp -d)
    (cd "$directory" && apt-get -qq -o APT::Sandbox::User= download prometheus && dpkg-deb --extract prometheus_*.deb .)
    cp "$directory/usr/bin/promtool" "$bin/promtool"
    rm -r "$directory"
  else
    DEBIAN_FRONTEND=noninteractive $root apt-get -qq install --yes --no-install-recommends "$name" > /dev/null
  fi
done
