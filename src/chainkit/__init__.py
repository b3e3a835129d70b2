"""The light library that node operator, auditor and security council share.

Imports run one way, and import-linter holds them to it (``make check``)::

    chainkit_indexer, chainkit_jobs      the two services; they never import each other
        cli, council, upgrade            commands, and what they do to the contracts
            proposal                     what owners sign apart, and how it is executed
            evidence                     bundles that prove a finding from one block hash
            registry, verification       what the contracts say, and what they should
                changes, simulation      calls that are planned, and run without being sent
                calls, safe              what a council may call, and the Safe that calls it
                contract_state           their storage, code and answers at one block
                interface, transactions  the contracts in their own words, and what is sent
                counter                  the contracts' own count of what they emitted
                signing                  who signs, each doubted once it signed
            tables, exports, report      what the roles hand to each other
            artifacts                    what the contracts compile to
                envelope                 node-0 envelopes and their proof
                    decode, wire         raw logs to typed events; the form of an envelope
                        signatures, deployment, proto
                            parameters, storage_layout
                            types
                                errors

``chain`` (JSON-RPC) stands beside the pure core. What makes bytes (decode, wire, envelope,
tables, report) has no I/O, no clock and no environment: the same chain gives the same bytes to
everyone who holds this wheel.
"""

__version__ = "0.1.0"
