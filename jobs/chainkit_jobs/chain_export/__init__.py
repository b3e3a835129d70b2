"""A chain export from JSON-RPC: headers, transactions, full receipts and all logs of a range.

Blocks are fetched by several threads, doubted one by one, and handed on in order; what a range of
blocks holds goes into files of its own, so that a killed export goes on behind the last range that
was published. The same chain in the same ranges gives the same bytes.
"""
