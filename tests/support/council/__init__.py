"""Councils: in memory, on an anvil with files and keystores, and as a Safe of each release."""
