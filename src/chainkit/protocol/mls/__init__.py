"""The part of MLS (RFC 9420) that a node judges: headers of messages, and key packages.

A strict reader of bytes that a stranger sent. Nothing here decrypts, and no group state is kept.
"""
