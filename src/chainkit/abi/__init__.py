"""The ABIs of the contracts, written by tools/write_abis.py and read by chainkit."""
