"""The misbehavior reports of all nodes, gathered into one folder (XIP-49 §3.2.8).

Reports are not replicated: each node returns its own, and those that clients sent to the node. A
node may hide reports about itself, so every registered node is asked, the disabled ones too, and
the page of the gathering lists which node has which report.

No node is trusted, and none can keep the others' reports out:

- A report counts for the node that hosts it only if the node's registered key signed it.
- Each node has the same share of the time, the bytes and the files. A node that drips, repeats
  itself, or never ends is cut off, and the page says so.
- A file is named after the host and the digest that the host signed. It is never overwritten.
"""
