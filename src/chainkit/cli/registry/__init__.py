"""``chainkit registry``: the nodes, read and changed."""
