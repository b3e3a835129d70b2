"""A node, as far as it works for others: it serves what it holds and originates what they publish.

Data flows one way: the indexer's steps and the sequencer commit envelopes, ``live`` hands them to
open streams, ``serving`` answers requests from the database and the streams.
"""
