#!/usr/bin/env bash
# Generates gen/ from proto/. With --check: generates elsewhere, fails where gen/ differs.
set -euo pipefail
cd "$(dirname "$0")/.."

generate() {
  local files
  mapfile -t files < <(cd proto && find wmr1 -name '*.proto' | sort)
  .venv/bin/python -m grpc_tools.protoc -Iproto --python_out="$1" --pyi_out="$1" \
    --grpc_python_out="$1" "${files[@]}"
}

if [ "${1:-}" = --check ]; then
  fresh=$(mktemp -d)
  trap 'rm -rf "$fresh"' EXIT
  generate "$fresh"
  # __init__.py files and caches are ours; everything else must be what protoc writes.
  diff -ru --exclude=__pycache__ --exclude=__init__.py --exclude=py.typed "$fresh" gen ||
    { echo "gen/ is not what proto/ gives: run make proto" >&2; exit 1; }
else
  generate gen
fi
