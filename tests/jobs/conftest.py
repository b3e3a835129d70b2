"""One Spark session for all jobs' tests; without Java they are skipped, and only then."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from chainkit.errors import ConfigurationError
from chainkit_jobs.session import require_java, spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    try:
        require_java()
    except ConfigurationError as error:
        pytest.skip(str(error))
    settings = {"spark.sql.shuffle.partitions": "2"}
    with pytest.MonkeyPatch.context() as environment:
        # Each audit here is short: what the second compiler would gain, it costs first.
        options = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
        environment.setenv("JAVA_TOOL_OPTIONS", options)
        with spark_session("local[2]", settings) as session:
            yield session
