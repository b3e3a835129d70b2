"""Protobuf messages of XIP-49 section 3, generated from the .proto files in this folder.

Do not edit ``*_pb2.py`` or ``*_pb2.pyi``: ``tools/generate_protobuf.py`` writes them.
"""
