"""The storage service of message history (XIP-31): keeps encrypted files for some days.

A client that has the id of a file may read it.

::

    cli, service      options; the process and its background tasks
    handlers, server  HTTP: paths, answers; connections and their time
    monitoring        metrics, alive, ready
    bodies            a request's body as it comes, within size, rate and time
    admission         how much may still be uploaded
    store             the files: their index, uploads under way, what is removed
    folder, bucket    where whole files are kept: on disk, or in an S3-compatible store (place)
    types             kinds of uploads, limits, refusals
"""
