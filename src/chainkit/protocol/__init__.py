"""The bytes of XIP-49: envelopes, payload events, reports. No network, no clock, no environment."""
