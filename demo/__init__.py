"""The whole story on one machine: `make demo`."""
