"""`make bench-node`: how fast a node is, beside what its libraries and its database do alone."""
