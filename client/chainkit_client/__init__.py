"""A client that believes no node: what an application links, and what checks nodes for anybody.

Data flows one way: ``nodes`` asks, ``reading`` verifies what came, ``ordering`` puts it into causal
order, and what breaks a rule becomes ``evidence``.
"""
