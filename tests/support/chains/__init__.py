"""Chains for tests: pick the cheapest one that shows what the test is about.

===================  ==========================  ==================================================
module               what it is                  pick it when
===================  ==========================  ==================================================
``fake_chain``       lists of posts in memory    a step, a reorg or a refusal is told in three lines
``answered_chain``   answers from memory         a long range of blocks matters, and its counter
``model_chain``      forks in memory             a state machine needs every branch there ever was
``proved_chain``     rows with real hashes       a proof reads them, and nothing runs
``cost_chain``       rows of transactions        what a transaction cost matters
``chain``            a fresh anvil               the real contracts, endpoint or reorg matter
``restless_chain``   an anvil under one seed     faults and reorgs must meet each other at random
===================  ==========================  ==================================================

``sealed`` makes the blocks in memory, with their true hashes. ``mined``, ``branches``,
``other_chain``, ``exported_chain``, ``every_type`` and ``tampering`` use an anvil;
``model_databases``, ``model_machine``, ``model_node`` and ``chain_machine`` drive models;
``payload_model`` and ``registry_model`` are the contracts as Python models.
"""
