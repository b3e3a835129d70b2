"""A node: it serves the envelopes that it holds, and originates what payers publish.

Data flows one way: the indexer's steps and the sequencer commit envelopes, ``live`` hands them to
open streams, ``serving`` answers requests from the database and the streams.
"""
