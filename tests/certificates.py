"""Certificates that nobody vouches for, made on the spot."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def certificate_for(host: str, folder: Path, *more: str) -> Path:
    """Put a host's `chat.pem` (certificate and key) and `chat.key` into a folder, and return it.

    Args:
        host: Its name.
        folder: Where the files go.
        more: Further hosts that the certificate is for.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]), datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(one) for one in (host, *more)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "chat.key").write_bytes(private)
    (folder / "chat.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)
    return folder


def mark_of(folder: Path) -> str:
    """What Chromium knows such a certificate by (`--ignore-certificate-errors-spki-list`)."""
    made = x509.load_pem_x509_certificate((folder / "chat.pem").read_bytes())
    public = made.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return b64encode(sha256(public).digest()).decode("ascii")
