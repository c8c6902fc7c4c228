#!/usr/bin/env bash
# Generates TypeScript (src/gen) and Python (python/skynet/scoring) from proto/.
# With --check nothing is changed, and stale output is an error.
set -euo pipefail
cd "$(dirname "$0")/.."

# The last grpcio-tools with protobuf 4: its generated code checks no runtime version, so that users may have any
# protobuf from 4.25 on.
GRPCIO_TOOLS="grpcio-tools==1.62.3"
# That release has wheels for these.
PYTHONS="python3.11 python3.12 python3.10 python3.9"

main() {
  case "${1:-}" in
    "") generate . ;;
    --check) check ;;
    *) fail "unknown argument \"$1\"; give nothing, or --check" ;;
  esac
}

check() {
  local fresh folder
  fresh="$(mktemp -d)"
  # Filled in here: at the exit the function has returned, and its variables are gone.
  trap "rm -rf '$fresh'" EXIT
  generate "$fresh"
  for folder in src/gen python/skynet/scoring; do
    diff -r -x __pycache__ "$folder" "$fresh/$folder" ||
      fail "$folder is stale; run npm run generate and commit what it changed"
  done
}

# generate ROOT: writes ROOT/src/gen and ROOT/python/skynet/scoring.
generate() {
  npx --no-install buf generate --output "$1"
  generate_python "$1/python"
}

generate_python() {
  local python out="$1/skynet/scoring"
  python="$(tools_python)"
  rm -rf "$out"
  mkdir -p "$1"
  # Imports name the proto package, and so the files stand in folders of its name.
  "$python" -m grpc_tools.protoc --proto_path=proto --python_out="$1" --pyi_out="$1" proto/skynet/scoring/v1/*.proto
  touch "$out/__init__.py" "$out/v1/__init__.py"
}

# A virtual environment of its own, made once.
tools_python() {
  local venv=.tools/protoc-python
  if [ "$(cat "$venv/.installed" 2>/dev/null)" != "$GRPCIO_TOOLS" ]; then
    local base
    base="$(base_python)"
    rm -rf "$venv"
    "$base" -m venv "$venv" >&2
    # setuptools 81 dropped pkg_resources, which that release imports.
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$GRPCIO_TOOLS" "setuptools<81" >&2
    echo "$GRPCIO_TOOLS" >"$venv/.installed"
  fi
  echo "$venv/bin/python"
}

base_python() {
  local name
  for name in $PYTHONS; do
    if "$name" -c 'import sys; sys.exit(not (3, 9) <= sys.version_info < (3, 13))' 2>/dev/null; then
      echo "$name"
      return
    fi
  done
  fail "generating Python needs one of: $PYTHONS"
}

fail() {
  echo "generate.sh: $1" >&2
  exit 1
}

main "$@"
