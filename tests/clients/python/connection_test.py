"""Metadata, TLS, and what is refused before anything is sent."""
import datetime
import ipaddress
from pathlib import Path

import grpc
import pytest
from conftest import Ask
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from fake_server import FakeServer

from quire_client import Client, QuireError, RetryPolicy
from quire_client.connection import Connection

ONCE = RetryPolicy(max_retries=0)


class Authority:
    """Signs certificates for localhost."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "an authority")])
        certificate = self._builder(self._name, self._key.public_key())
        certificate = certificate.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.certificate = self._signed(certificate)

    def certify(self) -> tuple[bytes, bytes]:
        """Private key and certificate, as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        builder = self._builder(name, key.public_key())
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return pem, self._signed(builder)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        day = datetime.timedelta(days=1)
        builder = x509.CertificateBuilder(self._name, subject, key, x509.random_serial_number())
        return builder.not_valid_before(now - day).not_valid_after(now + day)

    def _signed(self, builder: x509.CertificateBuilder) -> bytes:
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def test_every_call_identifies_the_client() -> None:
    with FakeServer() as server, Client(server.address, api_key="secret", tenant="team-a") as client:
        client.generate("Hi")
        client.stream("Hi").result()
        client.tokenize("a")
        client.detokenize([1])
        client.models()
        client.model_info()
        client.cache_stats()
        with client.watch_cache_stats() as watch:
            next(watch)
        client.health()
        assert len(server.metadata) == 9
        for metadata in server.metadata:
            assert metadata["authorization"] == "Bearer secret" and metadata["x-tenant-id"] == "team-a"


def test_a_client_without_a_key_sends_none(ask: Ask) -> None:
    with FakeServer() as server:
        ask(server.address)
        assert not {"authorization", "x-tenant-id"} & server.metadata[0].keys()


def test_tls_with_an_authority_of_ones_own(ask: Ask, authority: Authority, tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_bytes(authority.certificate)
    with FakeServer(credentials=grpc.ssl_server_credentials([authority.certify()])) as server:
        assert ask(server.address, ca_certificate=authority.certificate, api_key="secret").text == "Hello you"
        assert ask(server.address, ca_certificate=path).text == "Hello you"
        assert ask(server.address, ca_certificate=str(path)).text == "Hello you"
        assert server.metadata[0]["authorization"] == "Bearer secret"


def test_a_server_that_another_authority_vouches_for(ask: Ask, authority: Authority) -> None:
    with FakeServer(credentials=grpc.ssl_server_credentials([authority.certify()])) as server:
        for trust in ({"ca_certificate": Authority().certificate}, {"tls": True}, {}):
            with pytest.raises(QuireError) as caught:
                ask(server.address, retry=ONCE, **trust)
            assert caught.value.code is grpc.StatusCode.UNAVAILABLE
        assert server.requests == []


def test_a_server_that_asks_for_a_certificate(ask: Ask, authority: Authority) -> None:
    credentials = grpc.ssl_server_credentials([authority.certify()], authority.certificate, require_client_auth=True)
    key, certificate = authority.certify()
    with FakeServer(credentials=credentials) as server:
        trust = {"ca_certificate": authority.certificate, "retry": ONCE}
        assert ask(server.address, client_certificate=certificate, client_key=key, **trust).text == "Hello you"
        with pytest.raises(QuireError):
            ask(server.address, **trust)
        assert len(server.requests) == 1


def test_half_a_client_certificate_is_refused() -> None:
    for half in ({"client_certificate": b"pem"}, {"client_key": b"pem"}):
        with pytest.raises(ValueError, match="expected both or neither"):
            Connection(**half)  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [b"", b"junk"])
def test_what_is_not_pem_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_bytes(content)
    for pem in (content, path):
        with pytest.raises(ValueError, match="ca_certificate: expected PEM"):
            Client(ca_certificate=pem)
    with pytest.raises(FileNotFoundError):
        Client(ca_certificate=tmp_path / "none.pem")


@pytest.mark.parametrize("value", ["", "two\nlines", "clé"])
@pytest.mark.parametrize("name", ["api_key", "tenant"])
def test_what_cannot_be_a_header_is_refused_without_showing_it(name: str, value: str) -> None:
    with pytest.raises(ValueError) as caught:
        Connection(**{name: value})  # type: ignore[arg-type]
    assert str(caught.value) == f"{name}: expected printable ASCII characters, at least one"


def test_secrets_are_not_shown() -> None:
    shown = repr(Connection(api_key="secret", client_certificate=b"certificate", client_key=b"secret"))
    assert "certificate" in shown and "secret" not in shown


def test_the_address_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer() as server:
        monkeypatch.setenv("QUIRE_ADDRESS", server.address)
        with Client() as client:
            assert client.health() == "NOT_SERVING"
