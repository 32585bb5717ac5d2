"""The way from this machine to the server: proxies, certificates, and what is at home.

httpx reads the same variables, but refuses to start where one of them cannot be used, and takes
`10.*` in `no_proxy`, which AstrBot writes there, for the name of a host.
"""

from __future__ import annotations

import fnmatch
import importlib.util
import ipaddress
import os
import ssl
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

_HOME = (".local", ".localhost", ".lan", ".internal", ".home.arpa", ".test")
"""Names that no public server has."""


@dataclass(frozen=True)
class Notice:
    """Something that works, but that an operator should know.

    Attributes:
        key: The key of its sentence.
        values: What to fill in.
    """

    key: str
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Route:
    """How requests get to one address.

    Attributes:
        tls: The certificates to trust.
        proxy: What they go through, or None.
        notices: What an operator should know.
    """

    tls: ssl.SSLContext
    proxy: httpx.Proxy | None
    notices: tuple[Notice, ...]


def route_to(address: str) -> Route:
    """The way to an address by the variables of the environment, or around those of no use."""
    url = httpx.URL(address)
    notices: list[Notice] = []
    if url.scheme == "http" and not is_at_home(url.host):
        notices.append(Notice("plain_http"))
    # Redirects are not followed, so what begins without TLS never has any, and nothing to trust.
    plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls = _certificates(notices) if url.scheme == "https" else plain
    return Route(tls, _proxy(url, notices), tuple(notices))


def is_at_home(host: str) -> bool:
    """Whether a host is this machine, or one of its private network, by its name alone."""
    name = host.lower().rstrip(".")
    address = _ip(name)
    if address is None:
        return "." not in name or name.endswith(_HOME)
    return not address.is_global


def _proxy(url: httpx.URL, notices: list[Notice]) -> httpx.Proxy | None:
    known = urllib.request.getproxies()
    kind = next((kind for kind in (url.scheme, "all") if known.get(kind)), "")
    if not kind or _goes_directly(url.host, known.get("no", "")):
        return None
    variables = (f"{kind}_proxy", f"{kind.upper()}_PROXY")
    variable = next((name for name in variables if os.environ.get(name)), variables[1])
    try:
        proxy = _read_proxy(known[kind])
    except (ValueError, httpx.InvalidURL):
        notices.append(Notice("proxy_unusable", {"variable": variable}))
        return None
    shown = f"{proxy.url.scheme}://{proxy.url.netloc.decode()}"
    notices.append(Notice("proxy_used", {"variable": variable, "proxy": shown}))
    return proxy


def _read_proxy(text: str) -> httpx.Proxy:
    """Raises ValueError or httpx.InvalidURL for what httpx cannot use."""
    proxy = httpx.Proxy(text if "://" in text else f"http://{text}")
    if not proxy.url.host:
        raise ValueError("no host")
    if proxy.url.scheme.startswith("socks") and not importlib.util.find_spec("socksio"):
        raise ValueError("httpx needs socksio for it")
    return proxy


def _goes_directly(host: str, no_proxy: str) -> bool:
    if is_at_home(host) or urllib.request.proxy_bypass(host):
        return True
    return any(_matches(host.lower(), one) for one in no_proxy.lower().replace(",", " ").split())


def _matches(host: str, pattern: str) -> bool:
    """Whether a host is meant by a pattern with stars, an address or a network."""
    address = _ip(host)
    if "*" in pattern:
        is_numeric = not pattern.strip("0123456789.*")  # such as 10.*, which is no name
        return fnmatch.fnmatchcase(host, pattern) and not (is_numeric and address is None)
    try:
        network = ipaddress.ip_network(pattern.strip("[]"), strict=False)
    except ValueError:
        return False
    return address is not None and address in network


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _certificates(notices: list[Notice]) -> ssl.SSLContext:
    """Those that the environment names, else those that httpx brings along."""
    try:
        if variable := _missing_folder():
            raise FileNotFoundError(variable)
        return httpx.create_ssl_context()
    except OSError:  # an ssl.SSLError is one, too
        notices.append(Notice("certificates_unusable", {"variable": _broken_variable()}))
    try:
        return httpx.create_ssl_context(trust_env=False)
    except OSError:  # SSLKEYLOGFILE is obeyed all the same, but for a context made by hand
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_default_certs()
        return context


def _missing_folder() -> str:
    """OpenSSL takes a folder that does not exist for one without certificates."""
    folder = os.environ.get("SSL_CERT_DIR")
    if not folder or os.environ.get("SSL_CERT_FILE"):
        return ""
    return "" if Path(folder).is_dir() else "SSL_CERT_DIR"


def _broken_variable() -> str:
    try:
        ssl.create_default_context()
    except OSError:
        return "SSLKEYLOGFILE"
    return _missing_folder() or "SSL_CERT_FILE"
