"""What the contracts compile to, written by `tools/write_abis.py`: code, immutables, storage."""
