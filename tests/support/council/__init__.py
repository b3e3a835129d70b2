"""Councils: on paper, at a desk on an anvil, and as a Safe of each release."""
