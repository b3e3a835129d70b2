#!/usr/bin/env bash
# Builds geth from its Go module, pinned, for `make test-chains`: install_geth.sh CACHE
set -euo pipefail

version=v1.17.10
program="$1/geth/$version/geth"
if [ ! -x "$program" ]; then
  echo "set-up: geth $version, from its Go module (some minutes)"
  GOBIN="$(dirname "$program")" go install "github.com/ethereum/go-ethereum/cmd/geth@$version"
fi
mkdir -p "$1/bin"
ln -sf "$program" "$1/bin/geth"
