# Read by each finding: a temporary folder, pinned packages in it, and the comparison that decides the exit code.
# 0: as stated. 1: changed, with both texts. 2: a tool is missing, or the packages could not be installed.
set -eu
unset PYTHONPATH

need() {
  command -v "$1" >/dev/null || { echo "$1 is missing"; exit 2; }
}

need mktemp
folder=$(mktemp -d)
servers=""
end() {
  for server in $servers; do kill "$server" 2>/dev/null && wait "$server" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap end EXIT
cd "$folder"

# pip_packages NAME==VERSION …: `python` is then the interpreter that has them.
pip_packages() {
  need python3
  need pip
  python3 -m venv --without-pip python
  pip --python python/bin/python install --quiet "$@" >install.log 2>&1 || { echo "pip could not install $*"; exit 2; }
  PATH="$folder/python/bin:$PATH"
}

# npm_packages NAME@VERSION …: programs in this folder can import them. No package's own script runs.
npm_packages() {
  need node
  need npm
  echo '{"private": true, "type": "module"}' >package.json
  npm install --ignore-scripts --no-audit --no-fund --legacy-peer-deps "$@" >install.log 2>&1 ||
    { echo "npm could not install $*"; exit 2; }
  PATH="$folder/node_modules/.bin:$PATH"
}

# start_anvil [OPTION …]: anvil of npm on a free port, its URL in ANVIL.
start_anvil() {
  anvil --port 0 "$@" >anvil.log 2>&1 &
  servers="$servers $!"
  for _ in $(seq 300); do
    ANVIL=$(sed -n 's/^Listening on /http:\/\//p' anvil.log)
    [ -z "$ANVIL" ] || break
    sleep 0.1
  done
  [ -n "$ANVIL" ] || { echo "anvil did not start"; exit 2; }
  export ANVIL
}

# expect COMMAND …: its output must be what standard input has; its errors are shown where it is not.
expect() {
  cat >expected
  if "$@" >seen 2>errors && cmp --silent expected seen; then
    echo "as stated:"
    cat seen
    exit 0
  fi
  echo "expected:"
  cat expected
  echo "seen:"
  cat seen errors
  exit 1
}

# proxies_module: proxies.py in this folder, with a gRPC server in a process of its own, and Envoy in front of a port.
proxies_module() {
  cat >proxies.py <<'E'
import json
import socket
import subprocess
import sys

FILTERS = "type.googleapis.com/envoy.extensions.filters"
HTTP = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def address(port):
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def start_server(program):
    """Process and port of a Python program that prints its port."""
    process = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


def start_envoy(upstream, route, http_filters=()):
    """Process and port of Envoy with one route to a gRPC server, all else at its defaults."""
    port = free_port()
    router = {"name": "router", "typed_config": {"@type": f"{FILTERS}.http.router.v3.Router"}}
    manager = {
        "@type": f"{FILTERS}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "in",
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "node", **route}}],
                }
            ]
        },
        "http_filters": [*http_filters, router],
    }
    cluster = {
        "name": "node",
        "type": "STATIC",
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": HTTP,
                "explicit_http_config": {"http2_protocol_options": {}},
            }
        },
        "load_assignment": {
            "cluster_name": "node",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address(upstream)}}]}],
        },
    }
    chain = {"filters": [{"name": "http", "typed_config": manager}]}
    listener = {"name": "in", "address": address(port), "filter_chains": [chain]}
    config = {"static_resources": {"listeners": [listener], "clusters": [cluster]}}
    flags = ["--concurrency", "1", "--log-level", "error", "--use-dynamic-base-id"]
    return subprocess.Popen(["envoy", "--config-yaml", json.dumps(config), *flags]), port
E
}

# ticks_server: server.py in this folder, whose stream says something twice a second, without end.
ticks_server() {
  cat >server.py <<'E'
import time
from concurrent.futures import ThreadPoolExecutor

import grpc


def ticks(request, context):
    while context.is_active():
        yield b"tick"
        time.sleep(0.5)


class Ticks(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_stream_rpc_method_handler(ticks)


server = grpc.server(ThreadPoolExecutor(8), handlers=[Ticks()])
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
E
}

# safe_module: deployed.mjs in this folder, a Safe of one owner on anvil, and an account that is no owner.
safe_module() {
  cat >deployed.mjs <<'E'
import { readFileSync } from "node:fs";
import { Contract, ContractFactory, JsonRpcProvider, ZeroAddress } from "ethers";

const provider = new JsonRpcProvider(process.env.ANVIL, 31337, { cacheTimeout: -1, pollingInterval: 100 });
export const owner = await provider.getSigner(0);
export const sender = await provider.getSigner(1);
const artifacts = "node_modules/@safe-global/safe-contracts/build/artifacts/contracts";
const deploy = async (path, ...values) => {
  const { abi, bytecode } = JSON.parse(readFileSync(`${artifacts}/${path}`));
  return (await new ContractFactory(abi, bytecode, owner).deploy(...values)).waitForDeployment();
};
const singleton = await deploy("Safe.sol/Safe.json");
const proxy = await deploy("proxies/SafeProxy.sol/SafeProxy.json", await singleton.getAddress());
export const safe = new Contract(await proxy.getAddress(), singleton.interface, owner);
await (await safe.setup([owner.address], 1, ZeroAddress, "0x", ZeroAddress, ZeroAddress, 0, ZeroAddress)).wait();
E
}
