"""Ctrl-C stays Ctrl-C where a library raises its own error behind it; py4j alone is silenced."""

import logging

import pyspark.util
import pytest
from pyspark.serializers import NoOpSerializer

from chainkit_jobs.spark.session import _silence_py4j, keep_interruption


def test_keep_interruption__while_a_socket_is_opened__is_an_interruption(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pyspark.util, "_create_local_socket", interrupted)

    with (
        pytest.raises(KeyboardInterrupt),
        keep_interruption(),
        pyspark.util._load_from_socket(None, NoOpSerializer()),
    ):
        pass


def test_keep_interruption__behind_a_translated_error__is_an_interruption() -> None:
    with pytest.raises(KeyboardInterrupt), keep_interruption():
        try:
            try:
                raise KeyboardInterrupt
            finally:
                raise OSError("closed")
        except OSError as error:
            raise ValueError("no answer") from error


def test_keep_interruption__an_error_alone__stays_as_it_is() -> None:
    with pytest.raises(ValueError, match=r"^bad$"), keep_interruption():
        raise ValueError("bad")


def test_silence_py4j__other_modules_on_the_same_logger__are_still_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _silence_py4j()
    for path in ("lib/py4j/java_gateway.py", "lib/other/module.py"):
        record = {"name": "root", "levelno": logging.ERROR, "pathname": path, "msg": path}
        logging.getLogger().handle(logging.makeLogRecord(record))
    logging.getLogger("chainkit").error("an event")

    assert caplog.messages == ["lib/other/module.py", "an event"]
