#!/usr/bin/env bash
# Guess: the time that a gRPC server sees remaining is at most the time-out that the caller set.
# Seen: grpcio 1.85.1 rounds the time-out up when it sends it, more coarsely the longer it is: the server of a call
#   with 1,234.5 s sees 1,239 s or more.
# Why it matters: a server that works until shortly before "its" deadline answers long calls after the caller went: the
#   caller reads DEADLINE_EXCEEDED of something that was done. Leave a margin in proportion.
. "$(dirname "$0")/lib.sh"
pip_packages grpcio==1.85.1

cat >deadline.py <<'E'
from concurrent.futures import ThreadPoolExecutor

import grpc


class Remaining(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: str(context.time_remaining()).encode())


server = grpc.server(ThreadPoolExecutor(1), handlers=[Remaining()])
port = server.add_insecure_port("127.0.0.1:0")
server.start()
with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
    call = channel.unary_unary("/finding/Remaining")
    call(b"")
    print("1234.5 s: the server has longer:", float(call(b"", timeout=1234.5)) > 1237)
server.stop(None)
E
expect python deadline.py <<'E'
1234.5 s: the server has longer: True
E
