"""Backup account files: an installation that only reads, for who lost all devices (XIP-31)."""
