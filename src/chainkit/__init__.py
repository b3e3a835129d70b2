"""The light library that node operator, application developer, auditor and council share.

Imports run one way, and import-linter holds them to it (``make check``)::

    chainkit_node                        serves and originates; it runs the indexer, too
    chainkit_backups, chainkit_client,
    chainkit_gateway, chainkit_indexer,
    chainkit_jobs                        the other services; they never import each other

        cli, sqlite                      the ``chainkit`` command; how services open SQLite's files
        council                          checks evidence; drafts, signs and executes calls
        nodes                            asks nodes and gateways over gRPC
        evidence, service, terminal      what proves a finding; what all services and all command
                                         lines share
        contracts, exports, identity, misbehavior  contracts on the chain; tables of Parquet;
                                         inboxes; reports about nodes, and what they prove
        chain, documents                 endpoints; files that people and strangers wrote
        ethereum, protocol, text         blocks and receipts; the bytes of XIP-49; texts for people
        signatures, types                keys; the values that travel
        errors, extras                   the one exception tree; how to install what is missing

``chain`` alone talks to an endpoint, ``nodes`` alone to a node. Code that makes or checks bytes
(protocol, ethereum, evidence, identity, misbehavior, ``exports.tables``) has no network, no clock
and no environment: the same chain gives the same bytes to everyone who holds this wheel.
"""

__version__ = "0.1.0"
