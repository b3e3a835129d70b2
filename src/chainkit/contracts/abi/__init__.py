"""ABIs that chainkit reads: of our contracts by tools/write_abis.py, of the Safe beside it."""
