"""A server inside Envoy: the proxy's process holds Python, and calls its methods over ASGI.

::

    launch         a service becomes Envoy's process, which starts Python again
    folders        the folder of one process's files
    configuration  Envoy's configuration, from limits
    inside         that process: the command in a thread, the event loop, signals, the end
    server         the methods, from the start to the last call
    calls          one call: ASGI's events in and out
    frames         gRPC's framing: bytes in, messages out
    admin          questions to Envoy itself, over a Unix socket
"""
