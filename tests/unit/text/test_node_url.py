import pytest

from chainkit.errors import ConfigurationError
from chainkit.text.node_url import grpc_target


@pytest.mark.parametrize(
    ("url", "scheme", "target"),
    [
        ("http://node.example", "http", "node.example:80"),
        ("https://node.example/", "https", "node.example:443"),
        ("https://node.example:5051", "https", "node.example:5051"),
        ("http://[2001:db8::1]:5051", "http", "[2001:db8::1]:5051"),
        ("http://[::1]", "http", "[::1]:80"),
    ],
)
def test_grpc_target__address_of_a_node__is_host_and_port(
    url: str, scheme: str, target: str
) -> None:
    assert grpc_target("node", url) == (scheme, target)


@pytest.mark.parametrize(
    "url",
    [
        *("", "node.example", "ftp://node.example", "http://", "http://[::1"),
        *("http://node.example:port", "http://node.example:99999"),
        *("http://name:secret@node.example", "http://node.example/secret"),
        *("http://node.example?secret", "http://node.example#secret"),
    ],
)
def test_grpc_target__anything_else__is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigurationError, match="node: expected http://host:port") as caught:
        grpc_target("node", url)

    assert "secret" not in str(caught.value)
