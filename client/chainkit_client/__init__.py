"""A client that believes no node: what an application links, and what checks nodes for anybody.

Data flows one way: ``nodes`` asks, ``reading`` verifies what came, ``ordering`` puts it into causal
order, ``topics`` decides what is applied and what is asked for, and each broken rule becomes a
``Breach`` (``breach``). ``network`` reads topics from several nodes, and publishes. ``checking``
compares nodes with each other.
"""
