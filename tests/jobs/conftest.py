"""One Spark session for all jobs' tests, without Java skipped and only then; a faulty endpoint."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from chainkit.errors import ConfigurationError
from chainkit_jobs.spark.session import require_java, spark_session
from support.chains.chain import LocalChain
from support.endpoints.fault_proxy import FaultProxy


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    try:
        require_java()
    except ConfigurationError as error:
        pytest.skip(str(error))
    # Queries over a few rows, hardly one like another: code made for each would never pay. The
    # clusters' tests and the demo run as they are shipped.
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # The heap is small, and no core is free for a collector that works beside the tests.
        "spark.driver.defaultJavaOptions": "-XX:+UseSerialGC",
    }
    with spark_session("local[2]", settings) as session:
        yield session


@pytest.fixture
def proxy(local_chain: LocalChain) -> Iterator[FaultProxy]:
    with FaultProxy(local_chain.url) as proxy:
        yield proxy
