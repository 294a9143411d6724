"""Signed notes as other programs read them, and what is no note."""

from __future__ import annotations

import pytest

from isuit.audit.notes import (
    LOG,
    MOST_SIGNATURES,
    WITNESS,
    BadNote,
    Note,
    SigningKey,
    VerifierKey,
    cosignature,
    signed,
)

# The example of Go's golang.org/x/mod/sumdb/note, made by another program.
KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
NOTE = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n\n"
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)


def test_a_note_of_another_program_is_read_and_holds() -> None:
    key, note = VerifierKey.read(KEY), Note.read(NOTE)
    assert note.signed_by(key)
    assert (str(key), str(note)) == (KEY, NOTE)
    changed = Note.read(NOTE.replace("answer", "Answer"))
    with pytest.raises(BadNote, match="does not hold"):
        changed.signed_by(key)


def test_as_many_signatures_as_may_be_are_read() -> None:
    assert len(Note.read("text\n\n" + "— name AAAAAAA=\n" * MOST_SIGNATURES).signatures) == MOST_SIGNATURES


def test_what_was_signed_holds_for_its_key_alone() -> None:
    key, other = SigningKey("isuit/a", LOG, b"1" * 32), SigningKey("isuit/a", LOG, b"2" * 32)
    note = Note.read(str(signed("some\n\ntext\n", key)))
    assert note.text == "some\n\ntext\n"
    assert note.signed_by(key.verifier)
    assert not note.signed_by(other.verifier)
    assert not note.signed_by(SigningKey("isuit/b", LOG, b"1" * 32).verifier)
    assert "1" * 32 not in repr(key)


def test_a_witness_cannot_sign_for_a_log_nor_a_log_for_a_witness() -> None:
    log, witness = SigningKey("log", LOG, b"1" * 32), SigningKey("witness", WITNESS, b"2" * 32)
    note = signed("text\n", log)
    both = Note.read(str(note.with_signature(cosignature(note.text, witness, 1_700_000_000))))
    assert both.cosigned_at(witness.verifier) == 1_700_000_000
    assert both.signed_by(log.verifier)
    assert not both.signed_by(witness.verifier)
    assert both.cosigned_at(log.verifier) is None
    for text, line in ((both.text.upper(), both.signatures[1]), (both.text, cosignature("other\n", witness, 5))):
        with pytest.raises(BadNote, match="known witness"):
            Note(text, (line,)).cosigned_at(witness.verifier)


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "text\n", "text\n\n", "text\n\n— name\n", "text\n\n— name ????\n", "text\n\n- name AAAAAAAA\n",
     "text\n\n— name AAAAAAAA", "te\txt\n\n— name AAAAAAAA\n", "text\n\n— na+me AAAAAAAA\n", "text\n\n— name AAAA\n",
     "text\n\n— name AAAAAAB=\n", "text\n\n" + "— name AAAAAAA=\n" * (MOST_SIGNATURES + 1)],
)  # fmt: skip
def test_what_is_no_note(text: str) -> None:
    with pytest.raises(BadNote):
        Note.read(text)


@pytest.mark.parametrize(
    "text", ["", "name", KEY[:-1], KEY.replace("c74f20a3", "c74f20a4"), KEY.replace("Peter", "P ")]
)
def test_what_is_no_key(text: str) -> None:
    with pytest.raises(BadNote):
        VerifierKey.read(text)
