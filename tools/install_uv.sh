#!/usr/bin/env bash
# Makes `uv` available: the one on the PATH if it is the locked version, otherwise from PyPI.
# usage: install_uv.sh PYTHON CACHE
set -euo pipefail
python=$1 cache=$2

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "set-up: expected Python 3.11 or newer as ${python:-python3}: install the Debian package python3, or pass PYTHON=" >&2
  exit 1
fi
mkdir -p "$cache/bin" "$cache/stamps"
locked=$(sed -n 's/^uv==\([0-9.]*\).*/\1/p' requirements/uv.txt)
found=$(uv --version 2>/dev/null | awk '{print $2}' || true)
[ "$found" = "$locked" ] && exit 0

if ! "$python" -m pip --version >/dev/null 2>&1; then
  echo "set-up: expected uv $locked or pip, found neither: install the Debian package python3-pip" >&2
  exit 1
fi
echo "set-up: uv $locked"
# --target: a folder of our own is allowed where the system's Python is managed by its packager.
"$python" -m pip install --quiet --upgrade --require-hashes --disable-pip-version-check \
  --no-warn-script-location --root-user-action=ignore --target "$cache/uv" -r requirements/uv.txt
ln -sfn ../uv/bin/uv "$cache/bin/uv"
