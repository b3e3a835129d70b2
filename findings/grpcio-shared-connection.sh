#!/usr/bin/env bash
# Guess: each `grpc.insecure_channel(target)` has a connection of its own.
# Seen: with grpcio 1.85.1, channels of one process with the same target and options share one TCP connection. A channel
#   gets its own with `grpc.use_local_subchannel_pool`.
# Why it matters: limits by connection (streams at once, pings, flow control) hold for all of them together, and "a second
#   channel" neither spreads load nor keeps a slow stream away from a fast one.
. "$(dirname "$0")/lib.sh"
pip_packages grpcio==1.85.1

cat >connections.py <<'E'
from concurrent.futures import ThreadPoolExecutor

import grpc


class Peer(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: context.peer().encode())


server = grpc.server(ThreadPoolExecutor(1), handlers=[Peer()])
port = server.add_insecure_port("127.0.0.1:0")
server.start()
for options in ([], [("grpc.use_local_subchannel_pool", 1)]):
    channels = [grpc.insecure_channel(f"127.0.0.1:{port}", options=options) for _ in range(3)]
    peers = {channel.unary_unary("/finding/Peer")(b"") for channel in channels}
    print("3 channels,", len(peers), "connections", dict(options))
    for channel in channels:
        channel.close()
server.stop(None)
E
expect python connections.py <<'E'
3 channels, 1 connections {}
3 channels, 3 connections {'grpc.use_local_subchannel_pool': 1}
E
