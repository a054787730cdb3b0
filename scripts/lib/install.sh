# shellcheck shell=bash
# Installs packages on Debian 12 and Ubuntu 24.04. To use it, source this file and call `rl_install build` or `rl_install build
# tests`. An entry of a set is a package, or COMMAND:PACKAGE, which is installed only when the command is missing.

declare -A RL_PACKAGES
RL_PACKAGES[build]="
  gcc:gcc g++:g++ cmake:cmake ninja:ninja-build pkg-config:pkg-config python3 git:git curl:curl ca-certificates
  libmicrohttpd-dev libcjson-dev libsqlite3-dev zlib1g-dev libcurl4-openssl-dev libsystemd-dev libsodium-dev
  libzstd-dev libopenblas-dev libseccomp-dev libyajl-dev libcmocka-dev
  node:nodejs npm:npm"

RL_PACKAGES[tests]="
  clang:clang clang-format-14:clang-format-14 libclang-rt-dev ccache:ccache shellcheck:shellcheck sqlite3:sqlite3
  systemd-analyze:systemd systemd-nspawn:systemd-container mmdebstrap:mmdebstrap
  dpkg-shlibdeps:dpkg-dev lintian:lintian buildah:buildah openssl:openssl tinyproxy:tinyproxy
  zsh:zsh fish:fish man:man-db mandoc:mandoc
  chromium:chromium ps:procps strace:strace xmllint:libxml2-utils
  protoc:protobuf-compiler python3-protobuf python3-prometheus-client
  python3-pytest python3-requests python3-jsonschema python3-numpy python3-yaml"

RL_PACKAGES[headless]="chromium-headless-shell:chromium-headless-shell"
RL_PACKAGES[bench]="wrk:wrk python3" # for tests/bench/api.sh

rl_missing_packages() { # SET...: prints the packages that are not installed
  local set entry
  for set in "$@"; do
    for entry in ${RL_PACKAGES[$set]}; do
      case $entry in
        *:*) command -v "${entry%%:*}" >/dev/null || echo "${entry#*:}" ;;
        *) [ "$(dpkg-query -W -f '${db:Status-Status}' "$entry" 2>/dev/null)" = installed ] || echo "$entry" ;;
      esac
    done
  done
}

# Succeeds when sudo gives root rights. Asks for a password only on a terminal.
rl_sudo() {
  command -v sudo >/dev/null || return
  sudo -n true 2>/dev/null && return
  { : >/dev/tty; } 2>/dev/null && sudo true
}

# Installs the missing packages of the named sets. Prints what to do when it fails.
rl_install() {
  local missing as_root=()
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "This is not Debian or Ubuntu: install the packages that scripts/lib/install.sh lists. Continuing." >&2
    return 0
  fi
  missing=$(rl_missing_packages "$@" | tr '\n' ' ')
  [ -n "$missing" ] || return 0
  echo "Installing: $missing"
  if [ "$(id -u)" != 0 ]; then
    if ! rl_sudo; then
      echo "Installing packages needs root. Run this as root, then start again:" >&2
      echo "  apt-get update && apt-get install -y --no-install-recommends $missing" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3)
  "${apt[@]}" update </dev/null >/dev/null || echo "apt-get update failed; continuing with the existing package lists" >&2
  # shellcheck disable=SC2086 # $missing is a list
  if ! "${apt[@]}" install --no-install-recommends $missing </dev/null >/dev/null; then
    echo "Installing failed; see the message of apt-get above. Start again when its cause is resolved." >&2
    return 1
  fi
}

# Installs Chromium without a window, with which the tests of the page need half of the processor time. Ubuntu does not have it.
# Succeeds in any case, because the tests also run with `chromium`.
rl_install_headless_browser() {
  apt-cache show "${RL_PACKAGES[headless]#*:}" >/dev/null 2>&1 || return 0
  rl_install headless || echo "Continuing with chromium." >&2
}
