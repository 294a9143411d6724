"""A witness over HTTP, as C2SP's tlog-witness has it: `POST /add-checkpoint`, and a signature or the reason why not.

old <size>
<hashes of the consistency proof in base64, one per line>

<the signed checkpoint>
"""

from __future__ import annotations

import time
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from isuit.audit.notes import BadNote, Note, Signature, decoded
from isuit.audit.witness import CONFLICT, MALFORMED, Refused, Witness

LARGEST_REQUEST = 1 << 16  # bytes; 63 hashes and a checkpoint take 4,000
MOST_HASHES = 63
SECONDS = 10  # that a client may take


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    timeout = SECONDS

    def __init__(self, witness: Witness, *arguments: object) -> None:
        self._witness = witness
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_POST(self) -> None:
        if self.path != "/add-checkpoint":
            self._answer(404, "text/plain", "there is only /add-checkpoint here\n")
            return
        try:
            self._answer(200, "text/plain", self._add().line())
        except Refused as refusal:
            if refusal.status == CONFLICT:
                self._answer(CONFLICT, "text/x.tlog.size", f"{refusal.size}\n")
            else:
                self._answer(refusal.status, "text/plain", f"{refusal}\n")

    def _add(self) -> Signature:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST_REQUEST:
            raise Refused(MALFORMED, "the request has no length, or is too long")
        try:
            head, gap, note = self.rfile.read(int(length)).decode().partition("\n\n")
            first, *hashes = head.split("\n")
            word, _, size = first.partition(" ")
            if word != "old" or not gap or not size.isdecimal() or len(hashes) > MOST_HASHES:
                raise BadNote("a request is `old SIZE`, hashes, an empty line and a checkpoint")
            return self._witness.cosign(Note.read(note), int(size), [decoded(line) for line in hashes])[1]
        except (BadNote, UnicodeDecodeError):
            raise Refused(MALFORMED, "the request is not `old SIZE`, hashes, an empty line and a checkpoint") from None

    def _answer(self, status: int, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing is kept of who asked."""


def witness_server(directory: Path, port: int) -> ThreadingHTTPServer:
    """A server on loopback; whoever wants it on a network puts a proxy with TLS before it."""
    witness = Witness(directory, time.time)
    witness.key()
    return ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, witness))
