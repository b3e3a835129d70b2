"""The auditor's jobs: what nodes serve against what the chain holds, and what the chain cost."""
