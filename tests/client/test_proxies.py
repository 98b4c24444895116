"""Which proxy a URL goes through, by table."""

from __future__ import annotations

import pytest

from holdfast.client.proxies import proxy_for

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        ("https://api.example.com:6443", {}, ""),
        ("https://api.example.com:6443", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://api.example.com:6443", {"https_proxy": PROXY}, PROXY),
        ("https://api.example.com:6443", {"HTTPS_PROXY": "proxy:3128"}, PROXY),
        ("https://api.example.com:6443", {"HTTP_PROXY": PROXY}, ""),
        ("http://api.example.com", {"HTTP_PROXY": PROXY}, PROXY),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, ""),
    ],
)
def test_a_url_goes_through_the_proxy_of_its_scheme(url: str, environment: dict[str, str], proxy: str) -> None:
    assert proxy_for(url, environment) == proxy


@pytest.mark.parametrize(
    ("url", "excepted", "direct"),
    [
        ("https://api.example.com", "*", True),
        ("https://api.example.com", "api.example.com", True),
        ("https://api.example.com", "EXAMPLE.com", True),
        ("https://api.example.com", ".example.com", True),
        ("https://api.example.com", "*.example.com", True),
        ("https://example.com", ".example.com", False),
        ("https://badexample.com", "example.com", False),
        ("https://api.example.com", "other.com, example.com", True),
        ("https://api.example.com:6443", "example.com:6443", True),
        ("https://api.example.com:443", "example.com:6443", False),
        ("https://10.1.2.3", "10.0.0.0/8", True),
        ("https://11.1.2.3", "10.0.0.0/8", False),
        ("https://10.1.2.3", "10.0.0.0/zz", False),
        ("https://[fd00::5]:6443", "fd00::/8", True),
        ("https://[fd00::5]:6443", "fd00::5", True),
        ("https://10.1.2.3", "10.1.2.3", True),
        ("https://api.example.com", " , ", False),
    ],
)
def test_exceptions_go_directly(url: str, excepted: str, direct: bool) -> None:
    environment = {"HTTPS_PROXY": PROXY, "NO_PROXY": excepted}
    assert proxy_for(url, environment) == ("" if direct else PROXY)
