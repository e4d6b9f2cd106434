#!/usr/bin/env bash
# A PNG of a page of the viewer, if this machine has Chromium; else says nothing and does nothing.
# usage: tools/picture.sh PAGE.html PICTURE.png [SECONDS]      SECONDS: time in the recording (2)
set -euo pipefail
page=$(realpath "$1")
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [[ -z $browser ]]; then exit 0; fi
sandbox=()
if [[ $(id -u) -eq 0 ]]; then sandbox=(--no-sandbox); fi
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
if timeout 60 "$browser" --headless=new "${sandbox[@]}" --user-data-dir="$profile" --no-first-run --hide-scrollbars \
     --disable-background-networking --use-angle=swiftshader --enable-unsafe-swiftshader --window-size=1280,720 \
     --virtual-time-budget=3000 --screenshot="$2" \
     "file://$page#bare&quality=high&theme=light&t=${3:-2}" >/dev/null 2>&1; then
  printf '  %-22s%s\n' picture "$2"
fi
