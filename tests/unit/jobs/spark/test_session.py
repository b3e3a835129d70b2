"""Ctrl-C stays Ctrl-C where a library raises an error of its own behind it."""

import pyspark.util
import pytest
from pyspark.serializers import NoOpSerializer

from chainkit_jobs.spark.session import keep_interruption


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
