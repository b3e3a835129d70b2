import pytest

from chainkit.text.hosts import has_private_host, is_on_own_machine, is_public


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST.", "node.localhost", "printer.local", "db.internal", "nas"),
        *("127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0x7F000001", "0.0.0.0"),
        *("10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
        *("[::1]", "[fe80::1]", "[fc00::1]", "[::ffff:10.0.0.1]", "[::]"),
    ],
)
def test_has_private_host__host_of_ones_own_network__is_one(host: str) -> None:
    assert has_private_host(f"https://{host}:8080/path")


@pytest.mark.parametrize(
    "host", ["node.example.org", "localhost.example.org", "8.8.8.8", "[2606:4700::1]", "1.1.1"]
)
def test_has_private_host__any_other__is_none(host: str) -> None:
    assert not has_private_host(f"https://{host}")


@pytest.mark.parametrize("host", ["999.1.1.1", "1.2.3.4.5", "1.256.1"])
def test_has_private_host__numbers_that_are_no_address__is_none(host: str) -> None:
    assert not has_private_host(f"https://{host}")


def test_is_public__address_with_its_link__is_read_without_it() -> None:
    assert not is_public("fe80::1%eth0")


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "0x7f000001", "2130706433", "0.0.0.0", "169.254.169.254", "[::1]"),
        *("[fe80::1]", "[::ffff:127.0.0.1]", "[::]", "localhost", "LOCALHOST.", "a.localhost"),
    ],
)
def test_is_on_own_machine__loopback_or_link__is(host: str) -> None:
    assert is_on_own_machine(f"http://{host}:5051")


@pytest.mark.parametrize(
    "host",
    ["10.0.0.1", "192.0.2.1", "node.example.org", "localhost.example.org", "node", "[fd00::1]"],
)
def test_is_on_own_machine__any_other__is_not(host: str) -> None:
    assert not is_on_own_machine(f"http://{host}:5051")


def test_is_on_own_machine__no_url__is_not() -> None:
    assert not any(map(is_on_own_machine, ("http://[::1", "", "http://", "http://08.1")))
