"""A function's requests: declared origins only, and bought once (DECISIONS 16). Spec: plugin-model §25."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from activities.network import Network
from kernel.errors import Code, TurnwrightError
from kernel.manifest import HttpPermission
from tests.support.packages import function
from tests.support.rig import rig
from tests.turns.builders import until


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(secret)
    return folder / "cert.pem", folder / "key.pem"


@asynccontextmanager
async def https_server(folder: Path, hits: list[str]) -> AsyncIterator[str]:
    """An HTTPS server on loopback that notes the request lines; yields its origin."""
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(*certificate(folder))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        hits.append(head.split(b"\r\n")[0].decode())
        moved = b"302 Found\r\nLocation: https://127.0.0.1:1/\r\n" if b"/moved" in head else b"200 OK\r\n"
        writer.write(b"HTTP/1.1 " + moved + b"Content-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=trust)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def permissions(*origins: str) -> list[HttpPermission]:
    return [HttpPermission.model_validate({"origin": origin, "methods": ["GET"]}) for origin in origins]


async def test_only_declared_origins_and_methods_are_reached(tmp_path: Path) -> None:
    hits: list[str] = []
    async with https_server(tmp_path, hits) as origin:
        network = Network(ca_file=tmp_path / "cert.pem", allow_private=True)
        reply = await network.fetch(permissions(origin), {"url": f"{origin}/a", "method": "GET"})
        assert (reply["status"], reply["text"]) == (200, "ok")
        for url, method in (
            (f"{origin}/a", "POST"),
            ("https://127.0.0.1/a", "GET"),
            ("https://other.test/", "GET"),
        ):
            with pytest.raises(TurnwrightError) as refused:
                await network.fetch(permissions(origin), {"url": url, "method": method})
            assert refused.value.code == Code.TOOL_UNAUTHORIZED
        moved = await network.fetch(permissions(origin), {"url": f"{origin}/moved", "method": "GET"})
        assert moved["status"] == 302
        await network.close()
    assert hits == ["GET /a HTTP/1.1", "GET /moved HTTP/1.1"]


async def test_a_private_address_is_refused_by_default(tmp_path: Path) -> None:
    network = Network()
    with pytest.raises(TurnwrightError) as refused:
        await network.fetch(permissions("https://127.0.0.1"), {"url": "https://127.0.0.1/", "method": "GET"})
    assert refused.value.code == Code.TOOL_UNAUTHORIZED
    await network.close()


@pytest.mark.slow
async def test_a_request_of_a_repeated_handler_is_sent_once(tmp_path: Path) -> None:
    """The first worker stops while the handler is between its requests; the second replays the journal."""
    hits: list[str] = []
    began = tmp_path / "began"
    async with https_server(tmp_path, hits) as origin:
        body = (
            "from pathlib import Path\n"
            f'one = await ctx.utils.fetch_with_retry("{origin}/a")\n'
            f"if not Path({str(began)!r}).exists():\n"
            f"    Path({str(began)!r}).touch()\n"
            "    await asyncio.Event().wait()\n"
            f'two = await ctx.utils.fetch_with_retry("{origin}/a")\n'
            'return {"outcome": "success", "value": {"texts": [one.text, two.text]}}'
        )
        asks = f'  permissions: {{ http: [{{ origin: "{origin}", methods: [GET] }}] }}\n'
        config = tmp_path / "turnwright.toml"
        config.write_text('[network]\nca_file = "cert.pem"\nallow_private = true\n')
        packages = {"asks": function(body, extra=asks)}
        async with rig(tmp_path, packages=packages, start_worker=False, TURNWRIGHT_CONFIG=str(config)) as r:
            async with r.polling():
                session = await r.session(packages=["asks"])
                receipt = await session.submit("Go.")
                await until(lambda: asyncio.to_thread(began.exists), bool)
            async with r.polling():
                result = await session.result(receipt)
    assert result["runs"] == [{"runtime_id": "asks", "status": "success"}]
    assert hits == ["GET /a HTTP/1.1", "GET /a HTTP/1.1"]
