"""Keys and certificates: their contents, that they are stored, and when they are renewed."""

from __future__ import annotations

import ssl
import stat
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from holdfast.apiserver.auth import certificates
from holdfast.apiserver.auth.certificates import CertificateError, Pair
from holdfast.apiserver.auth.identity import Identity, IdentityError, write_private

NOW = datetime(2025, 1, 15, 10, 0, tzinfo=UTC)
BIND = "127.0.0.1"


def names_of(pair: Pair) -> set[str]:
    names = pair.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in names}


def test_the_serving_certificate_is_for_every_name_of_the_server() -> None:
    identity = Identity.ephemeral("192.0.2.7", now=NOW)
    assert names_of(identity.serving) == {
        "127.0.0.1",
        "::1",
        "192.0.2.7",
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    }
    identity.serving.certificate.verify_directly_issued_by(identity.authority.certificate)


@pytest.mark.parametrize("bind", ["0.0.0.0", "::"])
def test_an_address_that_stands_for_all_is_no_name(bind: str) -> None:
    assert bind not in certificates.hosts_for(bind)


def test_an_identity_is_made_once_and_kept(tmp_path: Path) -> None:
    first = Identity.kept(tmp_path / "pki", BIND, now=NOW)
    second = Identity.kept(tmp_path / "pki", BIND, now=NOW + timedelta(days=30))
    assert second.authority.certificate_pem == first.authority.certificate_pem
    assert second.serving.certificate_pem == first.serving.certificate_pem
    assert second.token_key.private_numbers() == first.token_key.private_numbers()
    assert second.admin_token == first.admin_token


def test_only_the_owner_can_read_the_stored_files(tmp_path: Path) -> None:
    Identity.kept(tmp_path / "pki", BIND, now=NOW)
    assert stat.S_IMODE((tmp_path / "pki").stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "pki").iterdir()}
    assert set(modes.values()) == {0o600}
    assert modes.keys() == {"ca.crt", "ca.key", "serving.crt", "serving.key", "service-account.key", "admin.token"}


def test_a_serving_certificate_near_its_end_is_renewed_by_the_same_authority(tmp_path: Path) -> None:
    first = Identity.kept(tmp_path, BIND, now=NOW)
    second = Identity.kept(tmp_path, BIND, now=first.serving.renew_at)
    assert second.serving.certificate != first.serving.certificate
    assert second.authority.certificate == first.authority.certificate
    assert second.admin_token == first.admin_token


def test_another_address_needs_another_serving_certificate(tmp_path: Path) -> None:
    first = Identity.kept(tmp_path, BIND, now=NOW)
    second = Identity.kept(tmp_path, "192.0.2.7", now=NOW)
    assert "192.0.2.7" in names_of(second.serving)
    assert second.authority.certificate == first.authority.certificate


def test_an_authority_at_its_end_is_replaced_with_everything_it_signed(tmp_path: Path) -> None:
    first = Identity.kept(tmp_path, BIND, now=NOW)
    second = Identity.kept(tmp_path, BIND, now=NOW + certificates.AUTHORITY_LIFETIME)
    assert second.authority.certificate != first.authority.certificate
    second.serving.certificate.verify_directly_issued_by(second.authority.certificate)


def test_a_crash_between_key_and_certificate_makes_both_anew(tmp_path: Path) -> None:
    Identity.kept(tmp_path, BIND, now=NOW)
    (tmp_path / "serving.crt").unlink()
    assert names_of(Identity.kept(tmp_path, BIND, now=NOW).serving)


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "serving.crt", "service-account.key", "admin.token"])
def test_a_damaged_file_is_named_and_not_replaced(tmp_path: Path, name: str) -> None:
    Identity.kept(tmp_path, BIND, now=NOW)
    (tmp_path / name).write_bytes(b"damaged")
    with pytest.raises(IdentityError, match=r"delete it to get a new one"):
        Identity.kept(tmp_path, BIND, now=NOW)
    assert (tmp_path / name).read_bytes() == b"damaged"


def test_a_certificate_and_a_key_must_belong_together() -> None:
    one, other = certificates.new_authority(NOW), certificates.new_authority(NOW)
    with pytest.raises(CertificateError, match="another key"):
        Pair.load(one.certificate_pem, other.key_pem)


def test_the_context_asks_for_client_certificates_without_needing_one() -> None:
    context = Identity.ephemeral(BIND, now=NOW).tls()
    assert context.verify_mode is ssl.CERT_OPTIONAL
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_the_kubeconfig_holds_address_authority_and_token() -> None:
    identity = Identity.ephemeral(BIND, now=NOW)
    config = identity.kubeconfig("https://127.0.0.1:1234")
    cluster = config["clusters"][0]["cluster"]
    assert cluster["server"] == "https://127.0.0.1:1234"
    assert b64decode(cluster["certificate-authority-data"]) == identity.authority.certificate_pem
    assert config["users"][0]["user"] == {"token": identity.admin_token}
    assert config["current-context"] == config["contexts"][0]["name"]


def test_a_private_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    for content in (b"one", b"two"):
        write_private(path, content)
        assert path.read_bytes() == content
    assert [each.name for each in path.parent.iterdir()] == ["file"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_every_key_is_of_a_kind_that_is_made_in_no_time(tmp_path: Path) -> None:
    identity = Identity.kept(tmp_path, BIND, now=NOW)
    keys = (identity.authority.key, identity.serving.key, identity.token_key)
    assert {key.curve.name for key in keys} == {"secp256r1"}
