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
import io
import json
import re
import struct
import sys
from datetime import datetime
from pathlib import Path

UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


class Wrong(ValueError):
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
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x * ROOT % P if (x * x - square) % P else x
    if y >= P or (x * x - square) % P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


BASE = point_of((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def signature_holds(public, message, signature):
    """RFC 8032, section 5.1.7."""
    key, first, scalar = point_of(public), point_of(signature[:32]), int.from_bytes(signature[32:], "little")
    if key is None or first is None or scalar >= Q or (len(public), len(signature)) != (32, 64):
        return False
    factor = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % Q
    left, right = times(scalar, BASE), add(first, times(factor, key))
    return not ((left[0] * right[2] - right[0] * left[2]) % P or (left[1] * right[2] - right[1] * left[2]) % P)


# JSON that no two programs read differently, its canonical form (RFC 8785), digests (docs/audit.md), the tree.


def read_json(content):
    text = content if isinstance(content, str) else content.decode("utf-8-sig")
    value = json.loads(
        text, object_pairs_hook=lambda pairs: require(len(dict(pairs)) == len(pairs), "a name twice") or dict(pairs)
    )
    canonical(value).encode()  # no half characters, no numbers that are none
    return value


def lines_of(content):
    require(content.endswith(b"\n"), "the last line has no end")
    return content[:-1].split(b"\n")


def canonical(value):
    """A JSON value in its one canonical spelling."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(name)}:{canonical(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, float):
        return number_text(value)
    require(isinstance(value, str) or abs(value or 0) <= 2**53, "JSON holds an integer beyond 2^53")
    return json.dumps(value, ensure_ascii=False)


def number_text(value):
    """A number as ECMAScript writes it."""
    if value == 0:
        return "0"
    require(value - value == 0, "a number is not finite")
    sign, digits, exponent = decimal.Decimal(repr(value)).normalize().as_tuple()
    text, point = "".join(map(str, digits)), len(digits) + exponent
    if 0 < point <= 21:
        text = f"{text[:point]:0<{point}}.{text[point:]}".rstrip(".")
    elif -6 < point <= 0:
        text = f"0.{'0' * -point}{text}"
    else:
        text = f"{text[0]}{'.' if text[1:] else ''}{text[1:]}e{point - 1:+d}"
    return "-" + text if sign else text


def tagged(tag, *parts):
    framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return hashlib.sha256(tag.encode() + b"\0" + framed).hexdigest()


def node_hash(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


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
    sentence = "the log does not extend the kept checkpoint: it was cut, rewritten or forked"
    if old_size in (0, size):
        return require(not path and old_root == (new_root if old_size else hashlib.sha256().digest()), sentence)
    require(0 < old_size < size and path, sentence)
    path = ([old_root] if old_size & (old_size - 1) == 0 else []) + path
    index, last = old_size - 1, size - 1
    while index & 1:
        index, last = index >> 1, last >> 1
    require(climb(index, last, path[1:], path[0]) == (old_root, new_root), sentence)


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


def signed_by(note, key, wanted_kind=1):
    """Whether the note has a signature of the key, a log's (1) or a witness's (4); one that does not hold spoils it."""
    text, signatures = note
    name, kind, public, key_id = key
    mine = [content[4:] for who, content in signatures if who == name and content[:4] == key_id]
    for content in mine:
        seconds = f"cosignature/v1\ntime {int.from_bytes(content[:8], 'big')}\n" if kind == 4 else ""
        message, signature = (seconds + text).encode(), content[8:] if kind == 4 else content
        require(signature_holds(public, message, signature), "a signature does not hold")
    return bool(mine) and kind == wanted_kind


def read_checkpoint(text):
    lines = text.split("\n")
    require(len(lines) >= 4 and lines[0] and re.fullmatch("0|[1-9][0-9]{0,15}", lines[1]), "this is no checkpoint")
    require(len(decoded(lines[2])) == 32 and int(lines[1]) <= 2**53, "this is no checkpoint")
    return lines[0], int(lines[1]), decoded(lines[2])


def reachable(trusted, rotations):
    """The trusted key and those that followed it, by notes in which each names the next."""
    keys, notes = [trusted], [read_note(content) for content in rotations]
    while True:
        for note in notes:
            heading, origin, new, *rest = note[0].split("\n")
            form = (heading, origin, rest) == ("isuit-key-rotation/1", keys[-1][0], [""])
            if form and read_key(new) not in keys and read_key(new)[0] == origin and signed_by(note, keys[-1]):
                keys.append(read_key(new))
                break
        else:
            return keys


def check_proof(proof, trusted=None, kept=None):
    """A proof holds; gives its event (or None) and the number of events."""
    require(proof["format"] == "isuit-proof/1", "this is no proof")
    key, note = read_key(proof["key"]), read_note(proof["checkpoint"])
    keys = [key] if trusted is None else reachable(trusted, proof["rotations"])
    sentence = "is not signed by the trusted key nor by one that followed it"
    require(key in keys and signed_by(note, key), f"the checkpoint {sentence}")
    origin, size, root = read_checkpoint(note[0])
    require(origin == key[0], "the checkpoint is one of another log")
    event, given = None, proof["inclusion"]
    if given is not None:
        leaf = hashlib.sha256(b"\0" + given["entry"].encode()).digest()
        require(0 <= given["index"] < size, "an event's place is none")
        found = climb(given["index"], size - 1, [bytes.fromhex(node) for node in given["path"]], leaf)[1]
        require(found == root, "the event is not in the log that was signed")
        event = read_json(given["entry"])
        require(event["sequence"] == given["index"] + 1, "the event has not the number of its place")
    if kept is not None:
        older = read_note(kept)
        old_origin, old_size, old_root = read_checkpoint(older[0])
        given = proof["consistency"]
        require(old_origin == origin, "the kept checkpoint is one of another log")
        require(any(signed_by(older, signer) for signer in keys), f"the kept checkpoint {sentence}")
        require(given is not None and given["old_size"] == old_size, "the proof is not about the kept checkpoint")
        require_consistent(old_size, old_root, size, root, [bytes.fromhex(node) for node in given["path"]])
    return event, size


def check_release(path, trusted=None):
    """A release's file as JSON Lines: rows and metadata are those of an event in the log."""
    *lines, last = lines_of(path.read_bytes())
    metadata = read_json(last)
    require(metadata.get("metadata") is True, "the metadata are missing")
    digest = hashlib.sha256(b"".join(line + b"\n" for line in lines)).hexdigest()
    require(digest == metadata["digest"] and len(lines) == metadata["rows"], "the rows are not those of the metadata")
    require(metadata.get("proof") is not None, "the file has no proof that a log holds it")
    event, size = check_proof(metadata["proof"], trusted)
    about = canonical({name: metadata[name] for name in metadata if name != "proof"})
    about_digest = hashlib.sha256(about.encode()).hexdigest()
    require(event and event["kind"] == "release-made", "the proof is about something else")
    for name in ("release", "digest"):
        require(event["payload"][name] == metadata[name], f"the {name} is not what the log speaks of")
    require(event["payload"]["metadata_digest"] == about_digest, "the metadata are not those that the log speaks of")
    return f"release {metadata['release']}: {metadata['rows']} rows, event {event['sequence']} of {size}"


def check_receipt(path, rider, trusted=None):
    """A requester's copy: the log has the erasure, and it is about this ID."""
    copy = read_json(path.read_bytes())
    require(copy["receipt"] is not None and copy["proof"] is not None, "the file was cut short: ask for it again")
    event, size = check_proof(copy["proof"], trusted)
    require(event and event["kind"] == "rider-erased", "the proof is about something else")
    logged = event["payload"]["receipt"]
    for name, value in logged.items():
        alike = map(datetime.fromisoformat if name == "erased_at" else canonical, (value, copy["receipt"][name]))
        require(len(set(alike)) == 1, f"the receipt's {name} is not what the log speaks of")
    nonces = [bytes.fromhex(entry["nonce"]) for entry in copy["bindings"]]
    mine = {tagged("isuit/receipt-binding/1", nonce, rider.encode()) for nonce in nonces}
    require(mine & set(logged["bindings"]), "this receipt is not about this ID")
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


def instant(text):
    """A time in the one spelling of the log, as digests have it."""
    time = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").isoformat()
    require(len(text) == 27 and text[:19] == time[:19], "a time is spelled otherwise")
    return time


def read_curves(content, record):
    """The rows of atlas.csv, which has one spelling."""
    header, *points = list(csv.reader(io.StringIO(content.decode(), newline="")))
    numbers = ["metric", "difficulty", "difficulty_se", "suitability"]
    require(header in (["site", *numbers], ["site", "dimension", *numbers]), "the curves have not their columns")
    again = io.StringIO(newline="")
    writer, rows = csv.writer(again, lineterminator="\n"), []
    writer.writerow(header)
    for site, *rest in points:
        dimension, values = rest[:-4], [float(number) if number else None for number in rest[-4:]]
        writer.writerow([site, *dimension, *("" if value is None else repr(value) for value in values)])
        where = (dimension and dimension[0]) or record["dimension"]
        rows.append([record["fit_id"], record["activity"], where, site or None, *values])
        require(len(rest) == len(header) - 1, "a line of the curves has other fields")
    require(again.getvalue().encode() == content, "the curves are not in their one spelling")
    return rows


def check_bundle(directory):
    """A bundle agrees with itself: files, chain, record and curves against the log, the cohort with its hash."""
    manifest = read_json((directory / "manifest.json").read_bytes())
    there = {name: (directory / name).read_bytes() for name in FILES if (directory / name).exists()}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in there.items()}
    require(manifest["files"] == digests, "the files are not those of the manifest")
    previous, logged, record = "0" * 64, [], read_json(there["fit.json"])
    for number, line in enumerate(lines_of(there["log.jsonl"]), start=1):
        event = read_json(line)
        entry = {name: event[name] for name in ("at", "kind", "payload", "previous", "sequence")}
        head = tagged("isuit/log-event/1", canonical(entry).encode())
        require(event == entry | {"head": head} and event["previous"] == previous, "the log is not a chain")
        require(event["sequence"] == number, "an event has not its number")
        instant(event["at"])
        previous = head
        if event["kind"] == "fit-recorded" and event["payload"]["fit_id"] == record["fit_id"]:
            logged.append(event["payload"]["rows_digest"])
    require(previous == manifest["log_head"], "the log does not end with the head of the manifest")
    require(set(record) == {name for name, _ in RECORD}, "the record has not its fields")
    fit, curves = record["fit_id"], read_curves(there["atlas.csv"], record)
    about = {"fit_id": fit, "cohort_hash": record["cohort_hash"], "with_cohort": "cohort.tsv" in there}
    require(all(manifest[name] == value for name, value in about.items()), "the manifest is about another bundle")
    row = [record[name] for name, _ in RECORD[:-1]] + [instant(record["recorded_at"])]
    found = {"ledger.fits": {fit: rows_digest("ledger.fits", RECORD, [row])}}
    found["atlas.difficulty"] = {fit: rows_digest("atlas.difficulty", CURVES, curves)}
    require(logged == [found], "the record or the curves are not those that the log speaks of")
    whole = record["cohort_hash"].partition(":")[2] == digests.get("cohort.tsv")
    require(whole or not manifest["with_cohort"], "the cohort does not have its hash")
    return f"{fit}, log head {previous}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["bundle", "release", "receipt", "proof", "checkpoint"])
    parser.add_argument("path", type=Path)
    for option in ("--key", "--kept", "--witness", "--id"):
        parser.add_argument(option)
    given = parser.parse_args()
    try:
        texts = {
            name: Path(path).read_text()
            for name, path in vars(given).items()
            if path and name in ("key", "kept", "witness")
        }
        trusted = read_key(texts["key"]) if "key" in texts else None
        if given.kind == "bundle":
            said = check_bundle(given.path)
        elif given.kind == "release":
            said = check_release(given.path, trusted)
        elif given.kind == "receipt":
            said = check_receipt(given.path, given.id or "", trusted)
        elif given.kind == "proof":
            event, size = check_proof(read_json(given.path.read_bytes()), trusted, texts.get("kept"))
            said = f"{event['kind']}, event {event['sequence']} of {size}" if event else f"{size} events"
        else:
            note = read_note(given.path.read_text())
            origin, size, root = read_checkpoint(note[0])
            require(trusted and signed_by(note, trusted), "the note is not signed by the key (--key)")
            witnessed = "witness" not in texts or signed_by(note, read_key(texts["witness"]), 4)
            require(witnessed, "the note is not signed by the witness")
            require(origin == trusted[0], "the checkpoint is one of another log")
            said = f"{origin}, {size} events, root {root.hex()}"
    except UNREADABLE as error:
        sys.exit(f"wrong: {error if isinstance(error, Wrong) else f'it cannot be read ({type(error).__name__})'}")
    print(said)


if __name__ == "__main__":
    main()
