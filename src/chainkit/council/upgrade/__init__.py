"""Upgrades of the two payload contracts: compared and simulated before they are sent."""
