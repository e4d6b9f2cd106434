#!/usr/bin/env bash
# Installs the system packages that a task needs, by apt, and nothing that is there already.
# usage: tools/setup.sh GROUP...     groups: build test python lint fuzz view aarch64
#
# Each line below is "package  probe": a package counts as there when dpkg says so or the probe succeeds, so that a
# compiler or a cmake from elsewhere is left alone.
set -euo pipefail

packages() {
  case "$1" in
    build) cat <<'LIST'
g++                 command -v g++
cmake               command -v cmake
ninja-build         command -v ninja
ccache              command -v ccache
libeigen3-dev       false
libpugixml-dev      false
libfmt-dev          false
nlohmann-json3-dev  false
libcli11-dev        false
libqhull-dev        false
zlib1g-dev          false
libpng-dev          false
LIST
    ;;
    test) cat <<'LIST'
libgtest-dev        false
LIST
    ;;
    python) cat <<'LIST'
python3             command -v ${PYTHON:-python3}
python3-venv        ${PYTHON:-python3} -c 'import ensurepip, venv'
python3-dev         test -e "$(${PYTHON:-python3} -c 'import sysconfig; print(sysconfig.get_paths()["include"])')/Python.h"
LIST
    ;;
    lint) cat <<'LIST'
git                 command -v git
python3             command -v ${PYTHON:-python3}
clang-format-14     command -v clang-format-14
binutils            command -v nm
LIST
    ;;
    view) cat <<'LIST'
chromium            command -v chromium
ffmpeg              command -v ffmpeg
npm                 command -v npm
LIST
    ;;
    fuzz) cat <<'LIST'
clang               command -v clang++
libclang-rt-14-dev  compgen -G "$(clang++ -print-runtime-dir)/libclang_rt.fuzzer*"
LIST
    ;;
    aarch64) cat <<'LIST'
g++-aarch64-linux-gnu    command -v aarch64-linux-gnu-g++
qemu-user                command -v qemu-aarch64
libpugixml-dev:arm64     false
libfmt-dev:arm64         false
libqhull-dev:arm64       false
zlib1g-dev:arm64         false
libpng-dev:arm64         false
libgtest-dev:arm64       false
LIST
    ;;
    *) echo "tools/setup.sh: unknown group \"$1\" (build test python lint fuzz view aarch64)" >&2; return 2 ;;
  esac
}

have_package() { [[ "$(dpkg-query -W -f='${Status}' "$1" 2>/dev/null)" == "install ok installed"* ]]; }

missing=()
for group in "$@"; do
  lines=$(packages "$group")
  while read -r package probe; do
    if ! have_package "$package" && ! bash -c "$probe" >/dev/null 2>&1; then missing+=("$package"); fi
  done <<<"$lines"
done
if [[ ${#missing[@]} -eq 0 ]]; then exit 0; fi

command="apt-get install -y --no-install-recommends ${missing[*]}"
if ! command -v apt-get >/dev/null; then
  echo "tools/setup.sh: these Debian packages seem to be missing, and there is no apt-get here to install them:" >&2
  echo "  ${missing[*]}" >&2
  echo "Install what they stand for by your system's own means; trying to go on without." >&2
  exit 0
fi
if [[ $(id -u) -eq 0 ]]; then
  as_root=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  as_root=(sudo -n)
else
  echo "tools/setup.sh: system packages are missing, and neither root nor sudo without a password is available. Run:" >&2
  echo "  sudo apt-get update && sudo $command" >&2
  exit 1
fi

echo "-- Installing system packages: ${missing[*]}"
if [[ "${missing[*]}" == *:arm64* ]]; then "${as_root[@]}" dpkg --add-architecture arm64; fi
install() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive $command -q; }
# A fresh machine has no package lists, an old one has stale ones: in both the first try fails.
if ! log=$(install 2>&1); then
  "${as_root[@]}" apt-get update -q
  if ! log=$(install 2>&1); then
    echo "$log" >&2
    echo "tools/setup.sh: apt could not install them; the command was: $command" >&2
    exit 1
  fi
fi
