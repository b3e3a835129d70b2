#!/usr/bin/env bash
# Puts the programs from npm where Ape, forge and the tests look for them.
# usage: install_programs.sh CACHE
set -euo pipefail
cache=$1

# The programs themselves, not npm's links: those start them through Node, which would leave
# them running when only Node is told to stop.
for program in anvil forge; do
  for path in node_modules/@foundry-rs/"$program"-*/bin/"$program"; do
    [ ! -x "$path" ] || ln -sfn "../../$path" "$cache/bin/$program"
  done
  if ! PATH="$cache/bin:$PATH" "$program" --version >/dev/null 2>&1; then
    echo "set-up: expected $program from npm (Linux on x86-64) or on the PATH, found neither" >&2
    exit 1
  fi
done
mkdir -p "$cache/solcx"
ln -sfn ../../tools/solc.js "$cache/solcx/solc-v0.8.28"
"$cache/solcx/solc-v0.8.28" --version >/dev/null
