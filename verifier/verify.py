"""A verifier that is not isuit's: Python's standard library alone, written from docs/audit.md and docs/proofs.md.

    python verify.py bundle DIRECTORY
    python verify.py release FILE.jsonl       [--key FILE]
    python verify.py receipt FILE.json --id ID [--key FILE]
    python verify.py proof FILE.json          [--key FILE] [--kept CHECKPOINT]
    python verify.py checkpoint FILE          --key FILE [--witness FILE]

Says what is wrong and exits 1; or says what holds and exits 0. A key is a C2SP verifier key, in a file of one line;
without one, a document's own key is taken at its word.
"""

import argparse
import base64
import csv
import decimal
import hashlib
import json
import re
import struct
import sys
from pathlib import Path


class Wrong(Exception):
    """Something that does not hold."""


def require(holds, sentence):
    if not holds:
        raise Wrong(sentence)


# Ed25519 (RFC 8032), verification only: nothing here is secret, so it need not take constant time.

P = 2**255 - 19
Q = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def add(one, two):
    """Sum of two points in extended coordinates."""
    a, b = (one[1] - one[0]) * (two[1] - two[0]) % P, (one[1] + one[0]) * (two[1] + two[0]) % P
    c, d = 2 * one[3] * two[3] * D % P, 2 * one[2] * two[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(number, point):
    found = (0, 1, 1, 0)
    while number:
        if number & 1:
            found = add(found, point)
        point, number = add(point, point), number >> 1
    return found


def point_of(text):
    """A point from its 32 bytes, or None."""
    y = int.from_bytes(text, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


BASE = point_of((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def signature_holds(public, message, signature):
    """RFC 8032, section 5.1.7."""
    if len(public) != 32 or len(signature) != 64:
        return False
    key, first, scalar = point_of(public), point_of(signature[:32]), int.from_bytes(signature[32:], "little")
    if key is None or first is None or scalar >= Q:
        return False
    factor = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % Q
    left, right = times(scalar, BASE), add(first, times(factor, key))
    return not ((left[0] * right[2] - right[0] * left[2]) % P or (left[1] * right[2] - right[1] * left[2]) % P)


# Canonical JSON (RFC 8785), tagged digests (docs/audit.md), the tree (RFC 6962).


def canonical(value):
    """A JSON value in its one canonical spelling."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(name)}:{canonical(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, float):
        return number_text(value)
    return json.dumps(value, ensure_ascii=False)


def number_text(value):
    """A number as ECMAScript writes it."""
    if value == 0:
        return "0"
    sign, digits, exponent = decimal.Decimal(repr(value)).normalize().as_tuple()
    text, point = "".join(map(str, digits)), len(digits) + exponent
    if len(text) <= point <= 21:
        text += "0" * (point - len(text))
    elif 0 < point <= 21:
        text = f"{text[:point]}.{text[point:]}"
    elif -6 < point <= 0:
        text = f"0.{'0' * -point}{text}"
    else:
        text = f"{text[0]}{'.' if text[1:] else ''}{text[1:]}e{point - 1:+d}"
    return "-" + text if sign else text


def tagged(tag, *parts):
    state = hashlib.sha256(tag.encode() + b"\0")
    for part in parts:
        state.update(len(part).to_bytes(8, "big") + part)
    return state.hexdigest()


def node_hash(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


def tree_root(leaves):
    if len(leaves) < 2:
        return leaves[0] if leaves else hashlib.sha256().digest()
    middle = 1 << (len(leaves) - 1).bit_length() - 1
    return node_hash(tree_root(leaves[:middle]), tree_root(leaves[middle:]))


def climb(index, last, path, start):
    """Follow a path upwards (RFC 9162): the hashes on the way, of which the last two are the trees' roots."""
    old = new = start
    for sibling in path:
        require(last > 0, "a path is too long")
        if index & 1 or index == last:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            new = node_hash(new, sibling)
        index, last = index >> 1, last >> 1
    require(last == 0, "a path is too short")
    return old, new


def require_consistent(old_size, old_root, size, new_root, path):
    if old_size in (0, size):
        require(not path and (old_size == 0 or old_root == new_root), "the log does not extend the kept checkpoint")
        return
    require(0 < old_size < size, "the log has fewer events than the kept checkpoint")
    path = ([old_root] if old_size & (old_size - 1) == 0 else []) + path
    require(path, "the log does not extend the kept checkpoint")
    index, last = old_size - 1, size - 1
    while index & 1:
        index, last = index >> 1, last >> 1
    require(
        climb(index, last, path[1:], path[0]) == (old_root, new_root), "the log does not extend the kept checkpoint"
    )


# Signed notes, keys and checkpoints (docs/proofs.md, C2SP).


def decoded(text):
    content = base64.b64decode(text, validate=True)
    require(base64.b64encode(content).decode() == text, "base64 is not in its canonical spelling")
    return content


def read_key(text):
    """Name, kind, public key and key id of a verifier key."""
    name, digits, encoded = text.strip().split("+", 2)
    content = decoded(encoded)
    key_id = hashlib.sha256(name.encode() + b"\n" + content).digest()[:4]
    require(len(content) == 33 and content[0] in (1, 4) and digits == key_id.hex(), "a key is not a verifier key")
    return name, content[0], content[1:], key_id


def read_note(content):
    text, gap, lines = content.rpartition("\n\n")
    require(gap and text and lines.endswith("\n"), "a signed note has not its form")
    found = [re.fullmatch("— ([^\\s+]+) (\\S+)", line) for line in lines[:-1].split("\n")]
    require(all(found), "a line of signature has not its form")
    return text + "\n", [(line[1], decoded(line[2])) for line in found]


def require_signed(note, key):
    """The note has a signature of the key, a log's or a witness's."""
    text, signatures = note
    name, kind, public, key_id = key
    mine = [content[4:] for who, content in signatures if who == name and content[:4] == key_id]
    require(mine, "the note is not signed by the key")
    for content in mine:
        seconds = f"cosignature/v1\ntime {int.from_bytes(content[:8], 'big')}\n" if kind == 4 else ""
        message, signature = (seconds + text).encode(), content[8:] if kind == 4 else content
        require(signature_holds(public, message, signature), "a signature does not hold")


def read_checkpoint(text):
    lines = text.split("\n")
    require(len(lines) >= 4 and lines[0] and re.fullmatch("0|[1-9][0-9]{0,15}", lines[1]), "this is no checkpoint")
    root = decoded(lines[2])
    require(len(root) == 32, "a root has not 32 bytes")
    return lines[0], int(lines[1]), root


def follow(trusted, rotations, wanted):
    """The trusted key must be the wanted one, or name it by notes of rotation."""
    key, left = trusted, list(rotations)
    while key != wanted:
        for content in left:
            note = read_note(content)
            heading, origin, new, *rest = note[0].split("\n")
            if any(who == key[0] and text[:4] == key[3] for who, text in note[1]):
                require_signed(note, key)
                require(
                    (heading, origin, rest) == ("isuit-key-rotation/1", key[0], [""]), "a rotation has not its form"
                )
                key = read_key(new)
                left.remove(content)
                break
        else:
            raise Wrong("the checkpoint is not signed by the trusted key nor by one that followed it")


def check_proof(proof, trusted=None, kept=None):
    """A proof holds; gives its event (or None) and the number of events."""
    require(proof["format"] == "isuit-proof/1", "this is no proof")
    key, note = read_key(proof["key"]), read_note(proof["checkpoint"])
    follow(key if trusted is None else trusted, proof["rotations"], key)
    require_signed(note, key)
    origin, size, root = read_checkpoint(note[0])
    require(origin == key[0] and key[1] == 1, "the checkpoint is one of another log")
    event, given = None, proof["inclusion"]
    if given is not None:
        leaf = hashlib.sha256(b"\0" + given["entry"].encode()).digest()
        require(0 <= given["index"] < size, "an event's place is none")
        found = climb(given["index"], size - 1, [bytes.fromhex(node) for node in given["path"]], leaf)[1]
        require(found == root, "the event is not in the log that was signed")
        event = json.loads(given["entry"])
        require(event["sequence"] == given["index"] + 1, "the event has not the number of its place")
    if kept is not None:
        older = read_note(kept)
        old_origin, old_size, old_root = read_checkpoint(older[0])
        require_signed(older, key if trusted is None else trusted)
        given = proof["consistency"]
        require(old_origin == origin, "the kept checkpoint is one of another log")
        require(given is not None and given["old_size"] == old_size, "the proof is not about the kept checkpoint")
        require_consistent(old_size, old_root, size, root, [bytes.fromhex(node) for node in given["path"]])
    return event, size


# Documents.


def check_release(path, trusted=None):
    """A release's file as JSON Lines: rows and metadata are those of an event in the log."""
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    metadata = json.loads(lines[-1])
    require(metadata.get("metadata") is True, "the metadata are missing")
    digest = hashlib.sha256(b"".join(lines[:-1])).hexdigest()
    require(
        digest == metadata["digest"] and len(lines) - 1 == metadata["rows"], "the rows are not those of the metadata"
    )
    require(metadata.get("proof") is not None, "the file has no proof that a log holds it")
    event, size = check_proof(metadata["proof"], trusted)
    about = canonical({name: metadata[name] for name in metadata if name != "proof"})
    require(event and event["kind"] == "release-made", "the proof is about something else")
    payload = event["payload"]
    require(payload["release"] == metadata["release"], "the proof is about another release")
    require(payload["digest"] == digest, "the rows are not those that the log speaks of")
    about_digest = hashlib.sha256(about.encode()).hexdigest()
    require(payload["metadata_digest"] == about_digest, "the metadata are not those that the log speaks of")
    return f"release {metadata['release']}: {metadata['rows']} rows, event {event['sequence']} of {size}"


def check_receipt(path, rider, trusted=None):
    """A requester's copy: the log has the erasure, and it is about this ID."""
    copy = json.loads(path.read_bytes())
    require(copy["receipt"] is not None and copy["proof"] is not None, "the file was cut short: ask for it again")
    event, size = check_proof(copy["proof"], trusted)
    require(event and event["kind"] == "rider-erased", "the proof is about something else")
    logged = event["payload"]["receipt"]
    require(logged["receipt_id"] == copy["receipt"]["receipt_id"], "the proof is about another receipt")
    for name in ("bindings", "cohorts", "fits", "riders", "tables", "suppressed", "log_head_before"):
        require(logged[name] == copy["receipt"][name], f"the receipt's {name} are not those that the log speaks of")
    nonces = [bytes.fromhex(entry["nonce"]) for entry in copy["bindings"]]
    mine = [tagged("isuit/receipt-binding/1", nonce, rider.encode()) for nonce in nonces]
    require(set(mine) & set(logged["bindings"]), "this receipt is not about this ID")
    return f"the erasure of this ID is event {event['sequence']} of {size}, receipt {logged['receipt_id']}"


RECORD = """fit_id cohort_hash activity dimension configuration estimator_version tool_version kind
discrimination:DOUBLE discrimination_se:DOUBLE log_likelihood:DOUBLE identification promotion held_out parameters
diagnostics skills:BIGINT commitment result_digest recorded_at:TIMESTAMP"""
CURVES = "fit_id activity dimension site metric:DOUBLE difficulty:DOUBLE difficulty_se:DOUBLE suitability:DOUBLE"
RECORD, CURVES = ([(*column.split(":"), "VARCHAR")[:2] for column in text.split()] for text in (RECORD, CURVES))
FILES = {"README.md", "atlas.csv", "cohort.tsv", "fit.json", "log.jsonl"}


def rows_digest(table, kinds, rows):
    """docs/audit.md: a float is the 16 hex digits of its bits."""
    exact = [[struct.pack(">d", cell).hex() if isinstance(cell, float) else cell for cell in row] for row in rows]
    lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() for row in exact]
    return tagged("isuit/rows/1", table.encode(), json.dumps([list(kind) for kind in kinds]).encode(), *sorted(lines))


def check_bundle(directory):
    """A bundle agrees with itself: files, chain, record and curves against the log, the cohort with its hash."""
    manifest = json.loads((directory / "manifest.json").read_bytes())
    require(set(manifest["files"]) <= FILES, "the manifest names files that no bundle has")
    for name, digest in manifest["files"].items():
        require(
            hashlib.sha256((directory / name).read_bytes()).hexdigest() == digest, f"{name} is not as the manifest says"
        )
    previous, logged, record = "0" * 64, [], json.loads((directory / "fit.json").read_bytes())
    for line in (directory / "log.jsonl").read_bytes().splitlines():
        event = json.loads(line)
        entry = {name: event[name] for name in ("at", "kind", "payload", "previous", "sequence")}
        head = tagged("isuit/log-event/1", canonical(entry).encode())
        require(event["previous"] == previous and event["head"] == head, "the log is not a chain")
        previous = head
        if event["kind"] == "fit-recorded" and event["payload"]["fit_id"] == record["fit_id"]:
            logged.append(event["payload"]["rows_digest"])
    require(previous == manifest["log_head"], "the log does not end with the head of the manifest")
    at = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{6})Z", record["recorded_at"])
    require(at and set(record) == {name for name, _ in RECORD}, "the record has not its fields")
    record["recorded_at"] = at[1] + ("" if at[2] == "000000" else f".{at[2]}")
    with (directory / "atlas.csv").open(newline="") as file:
        header, *points = list(csv.reader(file))
    require(
        header == ["site", "metric", "difficulty", "difficulty_se", "suitability"], "the curves have not their columns"
    )
    same = [record["fit_id"], record["activity"], record["dimension"]]
    curves = [
        [*same, site or None, *(float(number) if number else None for number in numbers)] for site, *numbers in points
    ]
    fit, row = record["fit_id"], [record[name] for name, _ in RECORD]
    digests = {
        "ledger.fits": {fit: rows_digest("ledger.fits", RECORD, [row])},
        "atlas.difficulty": {fit: rows_digest("atlas.difficulty", CURVES, curves)},
    }
    require(logged == [digests], "the record or the curves are not those that the log speaks of")
    cohort = directory / "cohort.tsv"
    if cohort.exists():
        digest = hashlib.sha256(cohort.read_bytes()).hexdigest()
        require(record["cohort_hash"].partition(":")[2] == digest, "the cohort does not have its hash")
    return f"{record['fit_id']}, log head {previous}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["bundle", "release", "receipt", "proof", "checkpoint"])
    parser.add_argument("path", type=Path)
    for option in ("--key", "--kept", "--witness"):
        parser.add_argument(option, type=Path)
    parser.add_argument("--id")
    given = parser.parse_args()
    try:
        trusted = None if given.key is None else read_key(given.key.read_text())
        if given.kind == "bundle":
            said = check_bundle(given.path)
        elif given.kind == "release":
            said = check_release(given.path, trusted)
        elif given.kind == "receipt":
            require(given.id, "name the ID with --id")
            said = check_receipt(given.path, given.id, trusted)
        elif given.kind == "proof":
            kept = None if given.kept is None else given.kept.read_text()
            event, size = check_proof(json.loads(given.path.read_bytes()), trusted, kept)
            said = f"{event['kind']}, event {event['sequence']} of {size}" if event else f"{size} events"
        else:
            note = read_note(given.path.read_text())
            require(trusted is not None, "name the log's key with --key")
            require_signed(note, trusted)
            if given.witness is not None:
                require_signed(note, read_key(given.witness.read_text()))
            origin, size, root = read_checkpoint(note[0])
            require(origin == trusted[0], "the checkpoint is one of another log")
            said = f"{origin}, {size} events, root {root.hex()}"
    except Wrong as wrong:
        sys.exit(f"wrong: {wrong}")
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        sys.exit(f"wrong: it cannot be read ({type(error).__name__})")
    print(said)


if __name__ == "__main__":
    main()
