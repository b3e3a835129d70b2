"""Endpoints that give up at once: a test that meets a fault does not wait for it to pass."""

from chainkit.chain import Endpoint, RetryPolicy

LONGEST_ANSWER_BYTES = 2**21


def impatient_endpoint(url: str, timeout_seconds: float = 2.0) -> Endpoint:
    return Endpoint.connect(
        url,
        timeout_seconds,
        longest_answer_bytes=LONGEST_ANSWER_BYTES,
        retry=RetryPolicy(attempts=1),
    )
