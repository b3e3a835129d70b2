"""The node operator's service: follow the chain, build signed node-0 envelopes, export them."""
