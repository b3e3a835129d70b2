"""An endpoint that answers from memory: below the client, or below its HTTP."""

import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import requests
import urllib3
from requests.adapters import HTTPAdapter

from chainkit.chain import Endpoint, RetryPolicy
from chainkit.chain.session import EndpointSession
from chainkit.chain.transport import HttpTransport

NAME = "http://endpoint.test"
AT_ONCE = RetryPolicy(attempts=4, first_pause_seconds=0, longest_pause_seconds=0)


@dataclass(frozen=True)
class RpcError:
    """A JSON-RPC error as the answer to one call."""

    code: int
    message: str = "refused"
    data: str | None = None


class FakeProvider:
    """Answers each method with a value or what a function of the parameters returns.

    ``interruptions`` come first, one per request: an exception is raised, anything else is the
    whole answer. ``requests`` keeps what was sent, a list of calls per request.
    """

    def __init__(self, answers: Mapping[str, Any], interruptions: Iterable[Any] = ()) -> None:
        self.answers = answers
        self.interruptions = list(interruptions)
        self.requests: list[list[tuple[str, Any]]] = []

    def endpoint(self) -> Endpoint:
        return Endpoint(self, NAME, AT_ONCE)

    def make_request(self, method: Any, params: Any) -> Any:
        return self._respond([(method, params)], lambda calls: self._answer(*calls[0]))

    def make_batch_request(self, batch_requests: Any) -> Any:
        return self._respond(batch_requests, lambda calls: [self._answer(*call) for call in calls])

    def _respond(self, calls: Sequence[Any], answer: Callable[[Sequence[Any]], Any]) -> Any:
        self.requests.append([(method, list(params)) for method, params in calls])
        if not self.interruptions:
            return answer(calls)
        if isinstance(interruption := self.interruptions.pop(0), Exception):
            raise interruption
        return interruption

    def _answer(self, method: str, params: Sequence[Any]) -> dict[str, Any]:
        value = self.answers[method]
        value = value(*params) if callable(value) else value
        if isinstance(value, RpcError):
            return {"error": {"code": value.code, "message": value.message, "data": value.data}}
        return {"result": value}


class FakeServer(HTTPAdapter):
    """Stands below the HTTP transport: each request meets the next of ``responses``.

    A response is an exception, or a status, headers and a body: bytes, something to read, or JSON,
    which may be a function of the parsed request. JSON takes the id of a single request.
    """

    def __init__(self, *responses: Any) -> None:
        super().__init__()
        self.responses = list(responses)

    def endpoint(self, url: str = NAME, **options: Any) -> Endpoint:
        session = EndpointSession()
        session.mount("http://", self)
        session.mount("https://", self)
        endpoint = Endpoint.connect(url, retry=AT_ONCE)
        endpoint.transport = HttpTransport(url, session=session, **options)
        return endpoint

    def send(self, request: Any, *arguments: Any, **options: Any) -> requests.Response:
        given = self.responses.pop(0)
        if isinstance(given, Exception):
            raise given
        status, headers, body = given
        raw = urllib3.HTTPResponse(
            self._body(json.loads(request.body), body), headers, status, preload_content=False
        )
        return self.build_response(request, raw)

    def _body(self, calls: Any, body: Any) -> Any:
        body = body(calls) if callable(body) else body
        if hasattr(body, "read1"):
            return body
        if isinstance(body, dict) and "id" in body and isinstance(calls, dict):
            body = body | {"id": calls["id"]}
        return io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
