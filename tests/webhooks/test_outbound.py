"""Where events may be posted to: addresses of the internet, over https, however they are spelt."""

from ipaddress import ip_address

import anyio
import pytest

from muniment.errors import InvalidInput
from muniment.outbound import Refused, find, is_public, parse

PRIVATE = [
    *("0.0.0.0", "10.1.2.3", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.8.8.8", "169.254.169.254"),
    *("172.16.0.1", "172.31.255.255", "192.0.0.192", "192.168.1.1", "198.18.0.1", "203.0.113.9", "224.0.0.1"),
    *("239.255.255.255", "240.0.0.1", "255.255.255.255", "168.63.129.16"),
    *("::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:10.0.0.1", "64:ff9b::7f00:1"),
    *("64:ff9b::808:808", "64:ff9b:1::a00:1", "100::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1"),
    *("2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "2002:7f00:1::", "2002:808:808::", "3fff::1"),
]
PUBLIC = ["8.8.8.8", "1.1.1.1", "93.184.215.14", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111", "2a00:1450::1"]


@pytest.mark.rule("EVT-1")
@pytest.mark.parametrize("address", PRIVATE)
def test_what_is_not_on_the_internet_is_refused(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.rule("EVT-1")
@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_on_the_internet_is_not(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.rule("EVT-1")
@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/hook",
        "ftp://example.com/",
        "https://",
        "https:///path",
        "https://user:secret@example.com/",
        "https://user@example.com/",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://example.com/#part",
        "https://[::1/",
        "//example.com",
        "example.com/hook",
        "file:///etc/passwd",
    ],
)
def test_only_an_address_over_https_without_a_password_is_taken(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(url, allow_private=False)
    assert caught.value.field == "url"
    assert "secret" not in str(caught.value)


@pytest.mark.rule("EVT-1")
@pytest.mark.parametrize(
    "host",
    ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f000001", "017700000001", "0", "[::1]", "[::ffff:127.0.0.1]"],
)
def test_a_host_that_leads_to_this_machine_is_refused_however_it_is_spelt(host: str) -> None:
    async def refused() -> None:
        with pytest.raises(Refused, match=r"address_refused|host_not_found"):
            await find(f"https://{host}/hook", allow_private=False)

    anyio.run(refused)


@pytest.mark.rule("EVT-1")
def test_what_is_connected_to_is_the_address_that_was_looked_at() -> None:
    async def found() -> None:
        target = await find("https://localhost:8443/hook?a=b", allow_private=True)
        assert "127.0.0.1" in target.addresses
        assert set(target.urls) <= {"https://127.0.0.1:8443/hook?a=b", "https://[::1]:8443/hook?a=b"}
        assert (target.host, target.host_header) == ("localhost", "localhost:8443")
        plain = await find("https://127.0.0.1/", allow_private=True)
        assert (plain.urls, plain.host_header) == (["https://127.0.0.1:443/"], "127.0.0.1")
        with pytest.raises(Refused, match="host_not_found"):
            await find("https://nowhere.invalid/", allow_private=False)

    anyio.run(found)
