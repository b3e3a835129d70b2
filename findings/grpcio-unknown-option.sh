#!/usr/bin/env bash
# Guess: grpcio refuses, or at least logs, a channel or server option whose name it does not know.
# Seen: grpcio 1.85.1 starts with it and prints nothing; what the option should have set stays at its default. Here
#   `grpc.max_recv_message_length` stands for `grpc.max_receive_message_length`, and 5 MiB are refused.
# Why it matters: limits, time-outs and ping rules of a node are then not what its operator wrote. Check each name by
#   what it does.
. "$(dirname "$0")/lib.sh"
pip_packages grpcio==1.85.1

cat >options.py <<'E'
from concurrent.futures import ThreadPoolExecutor

import grpc


class Size(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: str(len(request)).encode())


for name in ("grpc.max_recv_message_length", "grpc.max_receive_message_length"):
    server = grpc.server(ThreadPoolExecutor(1), handlers=[Size()], options=[(name, 8 << 20)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            print(name, channel.unary_unary("/finding/Size")(bytes(5 << 20)).decode())
        except grpc.RpcError as error:
            print(name, error.code().name)
    server.stop(None)
E
expect bash -c 'python options.py 2>&1' <<'E'
grpc.max_recv_message_length RESOURCE_EXHAUSTED
grpc.max_receive_message_length 5242880
E
