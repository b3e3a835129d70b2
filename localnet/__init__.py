"""A private chain on this machine, for the tests, the demo and the drills."""

import os

# Children are forked here. gRPC's own preparation for a fork, of no use before an exec, ends one
# child in thirty of a process that has connections. gRPC reads the setting when it is imported.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
