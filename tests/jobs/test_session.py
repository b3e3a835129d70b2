"""A Spark session that cannot start says why."""

import pytest

from chainkit.errors import ConfigurationError
from chainkit_jobs.spark.session import spark_session


def test_session__unknown_master__is_refused_before_java_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("chainkit_jobs.spark.session.SparkSession.getActiveSession", lambda: None)

    with pytest.raises(ConfigurationError, match="--master: expected"), spark_session("lcal[2]"):
        pass


def test_session__java_missing__names_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("chainkit_jobs.spark.session.java_version", lambda: 11)
    monkeypatch.setattr("chainkit_jobs.spark.session.SparkSession.getActiveSession", lambda: None)

    with pytest.raises(ConfigurationError) as raised, spark_session():
        pass

    assert str(raised.value) == (
        "java: expected version 17 or newer (install the Debian package "
        "openjdk-17-jre-headless), got 11"
    )
