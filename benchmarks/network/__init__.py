"""How fast nodes agree with each other."""

import os

# The benchmark starts programs and calls by gRPC: its preparation for a fork is of no use, and is
# decided where gRPC is first imported.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
