#!/bin/sh
# Runs `chainkit` with what may stand in no compose file and no argument list: each variable
# NAME_FILE names a mounted secret, whose content becomes NAME.
set -eu
for name in CHAINKIT_RPC CHAINKIT_WALLET_RPC CHAINKIT_DATABASE PGPASSWORD; do
  eval "file=\${${name}_FILE:-}"
  if [ -n "$file" ]; then
    value=$(cat "$file")
    export "$name=$value"
    unset "${name}_FILE"
  fi
done
exec chainkit "$@"
