"""URLs that another device or a gateway chose: only the trusted service's is followed (H5)."""

from __future__ import annotations

import pytest

from chainkit.errors import ConfigurationError
from chainkit_client.exchange.origin import is_of, origin_of

TRUSTED = origin_of("https://backups.example", "storage service")
ID = "abcdefghijklmnopqrstuv"
HOSTILE = [
    f"http://backups.example/backups/{ID}",
    f"https://backups.example.evil.example/backups/{ID}",
    f"https://evil.example/backups.example/{ID}",
    f"https://evil.example/?https://backups.example/{ID}",
    f"https://backups.example@evil.example/{ID}",
    f"https://evil.example@backups.example/{ID}",
    f"https://user:password@backups.example/{ID}",
    f"https://backups.example:444/{ID}",
    f"https://backups.example:80/{ID}",
    f"https://backups.example:0/{ID}",
    f"https://backups.example:99999/{ID}",
    f"https://backups.example:4 43/{ID}",
    f"https://backups.example./{ID}",
    f"https://backups.example#@evil.example/{ID}",
    f"https://backups.example/{ID}#evil",
    f"https://backups.example\\@evil.example/{ID}",
    f"https:\\\\backups.example\\{ID}",
    f"https:backups.example/{ID}",
    f"https:///backups.example/{ID}",
    f"//backups.example/{ID}",
    f"/backups/{ID}",
    f"https://backups.example /{ID}",
    f"https://backups.example/{ID} HTTP/1.1",
    f"https://backups.example/{ID}\r\nhost: evil.example",
    f"https://backups.exa\tmple/{ID}\x00",
    f"https://backups%2eexample/{ID}",
    f"https://backups。example.evil/{ID}",
    f"https://bаckups.example/{ID}",
    f"https://[::1]/{ID}",
    f"https://127.0.0.1/{ID}",
    f"https://2130706433/{ID}",
    f"https://169.254.169.254/latest/meta-data/{ID}",
    f"file:///etc/passwd?{ID}",
    f"ftp://backups.example/{ID}",
    f"gopher://backups.example/{ID}",
    f"data:text/plain,{ID}",
    "",
    "https://",
    "https://[",
]


@pytest.mark.conforms("H5")
@pytest.mark.parametrize("url", HOSTILE)
def test_is_of__url_that_leads_elsewhere__is_refused(url: str) -> None:
    assert not is_of(url, TRUSTED)


@pytest.mark.parametrize(
    "url",
    [
        f"https://backups.example/backups/{ID}",
        f"https://BACKUPS.example:443/backups/{ID}?part=1",
        f"HTTPS://backups.example/{ID}",
    ],
)
def test_is_of__url_of_the_service__is_taken(url: str) -> None:
    assert is_of(url, TRUSTED)


def test_is_of__name_in_letters_of_its_script__is_the_one_in_ascii() -> None:
    assert is_of(f"https://xn--bcher-kva.example/{ID}", origin_of("https://bücher.example", "x"))


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
def test_origin_of__this_machine__needs_no_tls(host: str) -> None:
    found = origin_of(f"http://{host}:5052", "storage service")

    assert str(found) == f"http://{host}:5052"


@pytest.mark.parametrize("host", ["10.0.0.1", "backups.example", "0.0.0.0", "127.0.0.1.evil"])
def test_origin_of__another_machine_without_tls__is_refused(host: str) -> None:
    with pytest.raises(ConfigurationError, match="https://HOST, or http:// on this machine"):
        origin_of(f"http://{host}/", "storage service")
