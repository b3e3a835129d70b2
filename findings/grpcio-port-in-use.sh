#!/usr/bin/env bash
# Guess: a second gRPC server on an address that is in use fails to start, on Linux, too.
# Seen: with grpcio 1.85.1 both listen, since its servers share ports by default (SO_REUSEPORT). `grpc.so_reuseport` 0
#   brings the error.
# Why it matters: a node that was started twice runs twice, with two configurations or two states behind one port, and
#   neither process logs anything.
. "$(dirname "$0")/lib.sh"
pip_packages grpcio==1.85.1

cat >twice.py <<'E'
from concurrent.futures import ThreadPoolExecutor

import grpc

for options in ([], [("grpc.so_reuseport", 0)]):
    first, second = (grpc.server(ThreadPoolExecutor(1), options=options) for _ in range(2))
    port = first.add_insecure_port("127.0.0.1:0")
    first.start()
    try:
        print(dict(options), second.add_insecure_port(f"127.0.0.1:{port}") == port)
    except RuntimeError as error:
        print(dict(options), type(error).__name__)
    first.stop(None)
E
expect python twice.py <<'E'
{} True
{'grpc.so_reuseport': 0} RuntimeError
E
