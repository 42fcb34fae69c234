"""The sealed channel of spec/channel.md, written from its text alone, replays spec/vectors/channel.json."""

import hashlib
import hmac
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VECTORS = json.loads((Path(__file__).parents[3] / "spec" / "vectors" / "channel.json").read_text())
PRIME = 2**255 - 19


def octets(text: str) -> bytes:
    return bytes.fromhex(text)


def sealed(key: bytes, number: int, plain: bytes, more: bytes = b"") -> bytes:
    return AESGCM(key).encrypt(struct.pack(">IQ", 0, number), plain, more)


def exchange_secret(seed: bytes) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(hashlib.sha512(seed).digest()[:32])


def exchange_public(public: bytes) -> bytes:
    y = int.from_bytes(public, "little") & ((1 << 255) - 1)
    return ((1 + y) * pow(1 - y, PRIME - 2, PRIME) % PRIME).to_bytes(32, "little")


class Handshake:
    """Noise's symmetric state."""

    def __init__(self, name: bytes, prologue: bytes) -> None:
        self.h = self.ck = name.ljust(32, b"\0")
        self.key, self.number = b"", 0
        self.mix_hash(prologue)

    def mix_hash(self, data: bytes) -> None:
        self.h = hashlib.sha256(self.h + data).digest()

    def derive(self, material: bytes, count: int) -> list[bytes]:
        base = hmac.digest(self.ck, material, "sha256")
        out = [b""]
        for n in range(count):
            out.append(hmac.digest(base, out[-1] + bytes([n + 1]), "sha256"))
        return out[1:]

    def mix_key(self, material: bytes) -> None:
        self.ck, self.key = self.derive(material, 2)
        self.number = 0

    def mix_secret(self, secret: bytes) -> None:
        self.ck, middle, key = self.derive(secret, 3)
        self.mix_hash(middle)
        self.key, self.number = key, 0

    def encrypt(self, plain: bytes) -> bytes:
        out = sealed(self.key, self.number, plain, self.h)
        self.number += 1
        self.mix_hash(out)
        return out

    def decrypt(self, out: bytes) -> bytes:
        plain = AESGCM(self.key).decrypt(struct.pack(">IQ", 0, self.number), out, self.h)
        self.number += 1
        self.mix_hash(out)
        return plain


def test_a_key_has_the_same_x25519_form_by_both_ways() -> None:
    for who in (VECTORS["host"], VECTORS["client"]):
        assert exchange_public(octets(who["public"])) == octets(who["x25519"])
        own = exchange_secret(octets(who["secret"])).public_key().public_bytes_raw()
        assert own == octets(who["x25519"])


@pytest.mark.parametrize("mode", ["known", "invited"])
def test_a_client_written_from_the_text_speaks_as_the_vectors_do(mode: str) -> None:
    case: dict[str, Any] = VECTORS[mode]
    is_invited = mode == "invited"
    name = b"Noise_IKpsk2_25519_AESGCM_SHA256" if is_invited else b"Noise_IK_25519_AESGCM_SHA256"
    head = bytes([1, int(is_invited)])
    state = Handshake(name, b"holdfast channel" + head)
    static = exchange_secret(octets(VECTORS["client"]["secret"]))
    ephemeral = X25519PrivateKey.from_private_bytes(octets(VECTORS["client_ephemeral"]))
    host = X25519PublicKey.from_public_bytes(octets(VECTORS["host"]["x25519"]))
    state.mix_hash(host.public_bytes_raw())
    first = ephemeral.public_key().public_bytes_raw()
    state.mix_hash(first)
    if is_invited:
        state.mix_key(first)
    state.mix_key(ephemeral.exchange(host))
    message = head + first + state.encrypt(static.public_key().public_bytes_raw())
    state.mix_key(static.exchange(host))
    message += state.encrypt(octets(VECTORS["invite"]["id"]) if is_invited else b"")
    assert message == octets(case["message_1"])

    second = octets(case["message_2"])
    theirs = X25519PublicKey.from_public_bytes(second[:32])
    state.mix_hash(second[:32])
    if is_invited:
        state.mix_key(second[:32])
    state.mix_key(ephemeral.exchange(theirs))
    state.mix_key(static.exchange(theirs))
    if is_invited:
        state.mix_secret(octets(VECTORS["invite"]["secret"]))
    assert state.decrypt(second[32:]) == b"\0" + case["says"].encode()
    assert state.h == octets(case["binding"])

    keys = dict(zip(("client", "host"), state.derive(b"", 2), strict=True))
    numbers = {"client": 0, "host": 0}
    for frame in case["frames"]:
        who = frame["from"]
        plain = bytes([frame["kind"]]) + octets(frame["body"])
        assert sealed(keys[who], numbers[who], plain) == octets(frame["message"])
        numbers[who] += 1
        if frame["kind"] == 2:
            keys[who] = sealed(keys[who], 2**64 - 1, bytes(32))[:32]
