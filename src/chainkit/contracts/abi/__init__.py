"""ABIs that chainkit reads: of our contracts, written by tools/write_abis.py, and of the Safe."""
