"""Where the server is, and how its clients identify themselves."""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import grpc.aio

Pem = bytes | str | os.PathLike[str]
Metadata = tuple[tuple[str, str], ...]

_DEFAULT_ADDRESS = "127.0.0.1:50051"
# An answer with all log-probabilities is far above gRPC's 4 MiB.
_MAX_MESSAGE_BYTES = 256 << 20
# The server takes a ping every 10 s, with calls or without.
_KEEPALIVE_MS = 60_000
_KEEPALIVE_TIMEOUT_MS = 20_000
_CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
    # A restarted server is found again soon, and a proxy of the environment is not for inference servers.
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 5000),
    ("grpc.enable_http_proxy", 0),
)


@dataclass(frozen=True)
class Connection:
    """address             host:port; None: $QUIRE_ADDRESS, or 127.0.0.1:50051
    tls                 encrypts, and trusts the certificate authorities that grpcio ships
    ca_certificate      PEM bytes, or the path of a file: TLS that trusts this authority alone
    client_certificate  the same, with client_key: shown to servers that ask for it
    api_key             sent as `authorization: Bearer KEY`, with or without TLS
    tenant              sent as `x-tenant-id`
    """

    address: str | None = None
    tls: bool = False
    ca_certificate: Pem | None = None
    client_certificate: Pem | None = None
    client_key: Pem | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    tenant: str | None = None

    def __post_init__(self) -> None:
        if (self.client_certificate is None) != (self.client_key is None):
            raise ValueError("client_certificate and client_key: expected both or neither")
        _check_header("api_key", self.api_key)
        _check_header("tenant", self.tenant)

    def metadata(self) -> Metadata:
        """What every call carries."""
        entries = []
        if self.api_key is not None:
            entries.append(("authorization", f"Bearer {self.api_key}"))
        if self.tenant is not None:
            entries.append(("x-tenant-id", self.tenant))
        return tuple(entries)

    def open_channel(self) -> grpc.Channel:
        credentials = self._credentials()
        if credentials is None:
            return grpc.insecure_channel(self._target(), options=_CHANNEL_OPTIONS)
        return grpc.secure_channel(self._target(), credentials, options=_CHANNEL_OPTIONS)

    def open_async_channel(self) -> grpc.aio.Channel:
        """Belongs to the event loop that runs."""
        credentials = self._credentials()
        if credentials is None:
            return grpc.aio.insecure_channel(self._target(), options=_CHANNEL_OPTIONS)
        return grpc.aio.secure_channel(self._target(), credentials, options=_CHANNEL_OPTIONS)

    def _target(self) -> str:
        return self.address or os.environ.get("QUIRE_ADDRESS") or _DEFAULT_ADDRESS

    def _credentials(self) -> grpc.ChannelCredentials | None:
        if not self.tls and self.ca_certificate is None and self.client_certificate is None:
            return None
        return grpc.ssl_channel_credentials(
            root_certificates=_pem_bytes("ca_certificate", self.ca_certificate),
            private_key=_pem_bytes("client_key", self.client_key),
            certificate_chain=_pem_bytes("client_certificate", self.client_certificate),
        )


def _check_header(name: str, value: str | None) -> None:
    # The value itself may be a secret: it is not shown.
    if value is not None and not (value and value.isascii() and value.isprintable()):
        raise ValueError(f"{name}: expected printable ASCII characters, at least one")


def _pem_bytes(name: str, pem: Pem | None) -> bytes | None:
    if pem is None:
        return None
    content = pem if isinstance(pem, bytes) else Path(pem).read_bytes()
    # gRPC itself would only fail to connect, or trust the public authorities in place of none.
    if b"-----BEGIN " not in content:
        raise ValueError(f"{name}: expected PEM; got {len(content)} bytes without a line that begins with -----BEGIN")
    return content
