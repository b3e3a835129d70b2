"""`make bench-audit`: how fast the audit is, what it finds, and what other engines take."""
