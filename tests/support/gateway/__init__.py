"""A gateway's surroundings from memory: nodes that lose answers, a chain that mines when told."""
