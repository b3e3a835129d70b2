"""Parts of every long-running service: its log lines, its monitor, its gRPC server."""
