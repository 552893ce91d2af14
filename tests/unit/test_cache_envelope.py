"""Envelopes of shared values: what is exactly right opens, anything else is absent and never raises."""

from __future__ import annotations

import math
import random
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retrieval.caching.encryption import EncryptionKeyError, TenantCipher
from retrieval.caching.envelope import HEADER_BYTES, Envelopes, belongs_to_another, read_header
from retrieval.caching.shared import Stored
from tests.fakes.cache_keys import cache_key

KEY = cache_key("question")
OTHER = cache_key("another question")
OLD, NEW, OWN = (bytes([number]) * 32 for number in (1, 2, 3))
PLAIN = Envelopes()
ENCRYPTED = Envelopes(TenantCipher([NEW]))
BOTH = pytest.mark.parametrize("envelopes", [PLAIN, ENCRYPTED], ids=["plain", "encrypted"])
VALUE = b"a text that shrinks " * 200


@BOTH
@given(value=st.binary(max_size=3000), stored_at_s=st.floats(0, 1e12))
def test_envelope_opens_to_what_was_sealed(envelopes: Envelopes, value: bytes, stored_at_s: float) -> None:
    """Value and time come back exactly, whatever they are."""
    assert envelopes.open(KEY, envelopes.seal(KEY, value, stored_at_s)) == Stored(value, stored_at_s)


@BOTH
@given(stored=st.binary(max_size=300))
@example(b"")
@example(b"abc")
@example(bytes(200))
def test_envelope_of_random_bytes_is_absent(envelopes: Envelopes, stored: bytes) -> None:
    """Bytes that nobody sealed, zeros and text among them, give no value and no exception (RED-06)."""
    assert envelopes.open(KEY, stored) is None


@BOTH
@given(data=st.data())
def test_envelope_changed_anywhere_is_absent(envelopes: Envelopes, data: st.DataObject) -> None:
    """A changed, missing or added byte at any place gives no value (RED-06)."""
    stored = envelopes.seal(KEY, VALUE, 5.0)
    place = data.draw(st.integers(0, len(stored) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != stored[place]))
    assert envelopes.open(KEY, stored[:place] + bytes([other]) + stored[place + 1 :]) is None
    assert envelopes.open(KEY, stored[:place]) is None
    assert envelopes.open(KEY, stored[:place] + stored[place + 1 :]) is None
    assert envelopes.open(KEY, stored + bytes([other])) is None


@BOTH
def test_envelope_of_another_key_is_absent_and_known_as_such(envelopes: Envelopes) -> None:
    """Another key's bytes give no value, and can be told from mere damage."""
    stored = envelopes.seal(OTHER, VALUE, 5.0)
    assert envelopes.open(KEY, stored) is None
    assert belongs_to_another(KEY, stored)
    assert not belongs_to_another(OTHER, stored)
    assert not belongs_to_another(KEY, b"garbage")


def test_envelope_of_another_key_is_absent_even_with_its_digest_start() -> None:
    """The whole digest takes part in the checksum, so writing the right start into the header does not help."""
    stored = PLAIN.seal(OTHER, VALUE, 5.0)
    forged = stored[: HEADER_BYTES - 16] + KEY.digest[:16] + stored[HEADER_BYTES:]
    assert PLAIN.open(KEY, forged) is None


@pytest.mark.parametrize(
    ("offset", "change"),
    [(3, b"\x02"), (4, b"\x04"), (9, struct.pack("<d", math.nan)), (9, struct.pack("<d", -1.0))],
    ids=["format", "flag", "no time", "time before the epoch"],
)
def test_envelope_of_another_kind_has_no_header(offset: int, change: bytes) -> None:
    """A format, a flag or a time that this version does not know is none of ours."""
    stored = PLAIN.seal(KEY, VALUE, 5.0)
    assert read_header(stored) is not None
    assert read_header(stored[:offset] + change + stored[offset + len(change) :]) is None


def test_envelope_compresses_only_what_is_large_and_shrinks() -> None:
    """Small values and values that hardly shrink stay as they are; others take less room."""
    small, noise = bytes(100), random.Random(5).randbytes(2000) + bytes(100)
    overhead = len(PLAIN.seal(KEY, b"", 5.0))
    assert len(PLAIN.seal(KEY, small, 5.0)) == len(small) + overhead
    assert len(Envelopes(compress_above_bytes=0).seal(KEY, noise, 5.0)) == len(noise) + overhead
    assert len(PLAIN.seal(KEY, VALUE, 5.0)) < len(VALUE) // 10


def test_envelope_that_would_swell_past_its_size_is_absent() -> None:
    """A body that decompresses to more than declared, or to more than is allowed, is never blown up."""
    bomb = Envelopes(max_value_bytes=1 << 30).seal(KEY, bytes(1 << 24), 5.0)
    assert len(bomb) < 1 << 18
    assert PLAIN.open(KEY, bomb) is None
    assert Envelopes(max_value_bytes=1 << 24).open(KEY, bomb) == Stored(bytes(1 << 24), 5.0)


@pytest.mark.parametrize(("sealing", "opening"), [(PLAIN, ENCRYPTED), (ENCRYPTED, PLAIN)])
def test_envelope_is_absent_when_encryption_was_switched(sealing: Envelopes, opening: Envelopes) -> None:
    """With encryption on, a value in the clear is refused, and the other way round."""
    assert opening.open(KEY, sealing.seal(KEY, VALUE, 5.0)) is None


def test_encrypted_envelope_does_not_hold_the_value() -> None:
    """Neither the value nor its tenant stands in it, and the same value looks different each time."""
    sealed = {Envelopes(TenantCipher([NEW]), compress_above_bytes=10_000).seal(KEY, VALUE, 5.0) for _ in range(3)}
    assert len(sealed) == 3
    assert not any(b"shrinks" in stored or b"acme" in stored for stored in sealed)


def test_encryption_rotates_keys() -> None:
    """The first key encrypts and all decrypt, so a new key is put first and the old one stays while values live."""
    old, rotated, new = (Envelopes(TenantCipher(keys)) for keys in ([OLD], [NEW, OLD], [NEW]))
    assert rotated.open(KEY, old.seal(KEY, VALUE, 5.0)) is not None
    assert new.open(KEY, rotated.seal(KEY, VALUE, 5.0)) is not None
    assert new.open(KEY, old.seal(KEY, VALUE, 5.0)) is None


def test_encryption_key_of_one_tenant_opens_nothing_of_another() -> None:
    """Keys differ by tenant, derived or configured, and a tenant's own key takes the place of the master's."""
    cipher = TenantCipher([NEW], {"own": [OWN]})
    for tenant in ("acme", "own"):
        content = cipher.encrypt(tenant, b"value", b"associated")
        assert cipher.decrypt(tenant, content, b"associated") == b"value"
        assert cipher.decrypt("third", content, b"associated") is None
        assert cipher.decrypt(tenant, content, b"other") is None
    assert TenantCipher([NEW]).decrypt("own", cipher.encrypt("own", b"value", b""), b"") is None


def test_encryption_remembers_a_bounded_number_of_tenants() -> None:
    """More tenants than are remembered are served all the same."""
    cipher = TenantCipher([NEW])
    first = cipher.encrypt("t0", b"value", b"")
    for number in range(1, 1100):
        cipher.encrypt(f"t{number}", b"", b"")
    assert cipher.decrypt("t0", first, b"") == b"value"


@pytest.mark.parametrize(
    ("masters", "tenants", "field"),
    [([], {}, "master_keys"), ([b"short"], {}, "master_keys"), ([NEW], {"a": [b"short"]}, "tenant_keys.a")],
)
def test_encryption_names_a_key_that_cannot_be_used(
    masters: list[bytes], tenants: dict[str, list[bytes]], field: str
) -> None:
    """A key of the wrong length, or none, is refused by name, and the error does not show the key."""
    with pytest.raises(EncryptionKeyError) as caught:
        TenantCipher(masters, tenants)
    assert caught.value.field == field
    assert "short" not in str(caught.value)
