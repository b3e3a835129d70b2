"""A chain export from JSON-RPC: headers, transactions, full receipts and all logs of a range.

Several threads fetch blocks; each block is checked by itself and passed on in order. The rows of a
range of blocks go into files of their own, so that a killed export continues after the last
published range. The same chain in the same ranges gives the same bytes.
"""
