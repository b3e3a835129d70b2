"""Groups: payloads of their topics and intents of the user, applied to one history.

``groups`` is the door. A ``session`` is a group within one transaction; ``applying`` takes payloads
in their order and ``receiving`` each of them, by its kind: ``commits`` or ``messages``. ``opening``
reads and decrypts both. ``joining`` takes welcomes, ``rewinding`` reorgs and finality, ``building``
makes the payloads of intents. ``publishing`` drives the intents over a network that is handed in.
"""
