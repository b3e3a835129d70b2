"""The contracts' code, immutables and storage, written by `tools/write_abis.py`."""
