"""One topic as a client follows it: answers of nodes go in, an order that may be applied comes out.

Pure: the caller asks nodes, has the clock, and stores.
"""
