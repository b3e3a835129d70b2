"""Paths as Spark's file readers take them: a path is a pattern there."""

from __future__ import annotations

import locale
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from chainkit.errors import ConfigurationError

UTF8: Final = "UTF-8"
_SPECIAL: Final = re.compile(r"[\\\[\]{}*?]")


def spark_paths(spark: SparkSession, paths: Iterable[Path]) -> list[str]:
    r"""Return paths, in which ``\ [ ] { } * ?`` are literal, for each reader of Spark.

    Raises ConfigurationError where Java's locale cannot name one of the files, or the path also has
    a colon, which patterns of Hadoop cannot contain.
    """
    # Absolute: a name before a colon would be taken for the scheme of a URI.
    texts = [str(path.absolute()) for path in paths]
    for text in texts:
        _check_locale(spark, text)
        if ":" in text and _SPECIAL.search(text):
            expected = r"no colon beside one of \ [ ] { } * ?"
            raise ConfigurationError(f"folder {os.path.dirname(text)}", expected, "both")
    return [_SPECIAL.sub(r"\\\g<0>", text) for text in texts]


def java_environment() -> dict[str, str]:
    """Return the variables by which Java names files in UTF-8, as Python does in each locale."""
    return {} if locale.getencoding().upper() == UTF8 else {"LC_ALL": "C.UTF-8"}


def _check_locale(spark: SparkSession, text: str) -> None:
    if text.isascii():
        return
    java = spark.sparkContext._jvm
    encoding = "" if java is None else java.java.lang.System.getProperty("sun.jnu.encoding")
    if encoding.upper() != UTF8:
        named = next((name for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), "")
        expected = "a locale of UTF-8 for Java, such as LC_ALL=C.UTF-8"
        got = f"{encoding} ({named}={os.environ[named]})" if named else f"{encoding}, without one"
        raise ConfigurationError(f"folder {os.path.dirname(text)}", expected, got)
