"""Errors between devices; their names are XIP-31's BackupApplyError, BackupCreateError.

::

    ExchangeError
    ├── HistoryOff          no storage service is configured
    ├── NoOtherDevice       the inbox has only this one
    ├── NetworkError        the storage service does not answer, or not as it must
    ├── ResponseNotFound    nothing came that could be applied
    ├── DecryptionFailed    the key does not open the file
    ├── ValidationFailed    the file is not the one that was named, or breaks a rule
    ├── RequestNotFound     no other device asks under this id
    ├── EncryptionError     the file cannot be made
    └── InvalidRequest      the request may not be answered
        └── WrongPin
"""

from __future__ import annotations

from chainkit.errors import ChainkitError


class ExchangeError(ChainkitError):
    """A request for history, or its answer, goes no further."""


class HistoryOff(ExchangeError):
    """No storage service is configured: nothing is asked for, and nothing is given (H18)."""


class NoOtherDevice(ExchangeError):
    """The inbox has no other device that could be asked."""


class NetworkError(ExchangeError):
    """The storage service or the gateway did not answer, or not as it must."""


class ResponseNotFound(ExchangeError):
    """There is no pending request with a response (H20)."""


class DecryptionFailed(ExchangeError):
    """The request's key does not open the file."""


class ValidationFailed(ExchangeError):
    """The file is not the one that the response names, or breaks a rule."""


class RequestNotFound(ExchangeError):
    """No other device asks under this id."""


class EncryptionError(ExchangeError):
    """The file cannot be written."""


class InvalidRequest(ExchangeError):
    """The request may not be answered: by whom it was sent, or where the file would go."""


class WrongPin(InvalidRequest):
    """The PIN is not the one that the other device shows."""
