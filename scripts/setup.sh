#!/usr/bin/env bash
# Gets what is missing to run and test WM-R1 on a CPU: .venv with the locked packages, a
# Chromium, Redis, fonts. Says what it does; does nothing twice. Called by `make setup`.
#
#   PYTHON=python3.12 make setup     another interpreter (3.11 or newer)
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "setup: $*"; }
fail() { echo "setup: $*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  local name
  for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if have "$name" && new_enough "$name"; then echo "$name"; return; fi
  done
}

# The renderer's own search, so that what is found here is found there.
find_browser() { "${python:-false}" -m services.renderer.chromium 2>/dev/null || true; }

can_apt() { have apt-get && { [ "$(id -u)" = 0 ] || have sudo; }; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

apt_install() {
  say "installing with apt-get: $*"
  local log
  log=$(mktemp)
  if ! { as_root apt-get update -q &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends "$@"; } \
    >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    fail "apt-get could not install $*"
  fi
  rm -f "$log"
}

# --- what the system must give ------------------------------------------------------------

wanted=()
python=$(find_python)
[ -n "$python" ] || wanted+=(python3 python3-venv)
if [ -n "$python" ] && [ ! -x .venv/bin/python ] && ! "$python" -c 'import ensurepip' 2>/dev/null; then
  wanted+=("$(basename "$(readlink -f "$(command -v "$python")")")-venv")
fi
have redis-server || wanted+=(redis-server)
if [ -n "$python" ] && [ -n "${WMR1_BROWSER:-}" ] && [ -z "$(find_browser)" ]; then
  fail "WMR1_BROWSER=$WMR1_BROWSER is no program that can be run"
fi
if can_apt; then
  if [ -z "$(find_browser)" ]; then
    # Ubuntu's package of this name is only a pointer to a snap, so it is not asked for.
    grep -qs '^ID=debian' /etc/os-release && wanted+=(chromium-headless-shell)
  fi
  # Playwright's driver links to it, and minimal systems lack it.
  ldconfig -p 2>/dev/null | grep -q 'libatomic\.so\.1' || wanted+=(libatomic1)
  have fc-list || wanted+=(fontconfig)
  fonts=$(fc-list : family 2>/dev/null || true)
  grep -q 'Roboto' <<<"$fonts" || wanted+=(fonts-roboto)
  grep -q 'Noto Sans Arabic' <<<"$fonts" || wanted+=(fonts-noto-core)
  grep -q 'Noto Sans CJK' <<<"$fonts" || wanted+=(fonts-noto-cjk)
  grep -q 'Noto Color Emoji' <<<"$fonts" || wanted+=(fonts-noto-color-emoji)
fi
if [ ${#wanted[@]} -gt 0 ]; then
  can_apt || fail "please install ${wanted[*]} with this system's package manager, then try again"
  apt_install "${wanted[@]}"
fi

python=$(find_python)
[ -n "$python" ] || fail "Python 3.11 or newer is needed; name one with PYTHON=/path/to/python3"
have redis-server || fail "redis-server is needed and was not found after its installation"

# --- the environment ----------------------------------------------------------------------

if [ ! -x .venv/bin/python ]; then
  say "creating .venv with $("$python" --version)"
  rm -rf .venv
  "$python" -m venv .venv
fi
.venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail ".venv holds a Python older than 3.11; remove the folder and try again"

packages=$(grep -c '==' requirements/cpu.lock)
say "installing $packages locked packages into .venv (torch is the large one)"
.venv/bin/python -m pip install -qq --disable-pip-version-check -r requirements/cpu.lock
.venv/bin/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .

# --- a browser, where the system had none --------------------------------------------------

if [ -z "$(find_browser)" ]; then
  say "downloading a Chromium with Playwright"
  with_deps=()
  can_apt && with_deps=(--with-deps)
  .venv/bin/playwright install "${with_deps[@]}" chromium-headless-shell >/dev/null ||
    fail "no browser: install Chromium, or name one with WMR1_BROWSER, then try again"
fi

say "done"
