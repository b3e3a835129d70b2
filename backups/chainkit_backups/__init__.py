"""The storage service of message history (XIP-31): encrypted files, for days, for who has the id.

::

    cli, service      options; the process and its background tasks
    handlers, server  HTTP: paths, answers; connections and their time
    monitoring        metrics, alive, ready
    bodies            a request's body as it comes, within size, rate and time
    admission         how much may still be uploaded
    store             the files on disk
    types             kinds of uploads, limits, refusals
"""
