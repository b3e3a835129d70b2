"""The node operator's service: follows the chain, builds signed node-0 envelopes, exports them."""
