"""The erasure receipt: what was removed, what is kept and why, how absence was verified. It names nobody.

`ledger.receipts` holds the core, written with the decision, and the verification, written with its completion; the log
head that completes a receipt is the head of its `erasure-completed` event and so cannot be in the row itself.

A requester's copy may hold, for each ID, a nonce: SHA-256 over the tag, the nonce and the ID (in the encoding of
`isuit.audit.digests.tagged`) is a `binding` of the stored receipt. Whoever has nonce and ID can show that the receipt
is about them; the store keeps no nonce, so that nobody can try IDs against a binding.
"""

from __future__ import annotations

import json
import secrets
from typing import Literal

import duckdb

from isuit.audit.digests import tagged
from isuit.audit.log import instant, read_log
from isuit.published import ErasureReceipt
from isuit.store.query import rows

FORMAT: Literal["isuit-erasure-receipt/1"] = "isuit-erasure-receipt/1"
BINDING_TAG = "isuit/receipt-binding/1"
NONCE_BYTES = 32


KEPT = [
    {"what": "the atlas: difficulty by metric and site", "why": "it describes conditions and holds no rider's row"},
    {
        "what": "bare leaves and roots",
        "why": "without the destroyed salt they say nothing, and they keep cohorts checkable",
    },
    {
        "what": "keyed digests of the IDs",
        "why": "they keep later imports without these riders; --no-suppress omits them",
    },
    {
        "what": "rows of public releases that these riders had a part in",
        "why": "changed at once they would show that part; at most held_releases later releases repeat them; what a "
        "private release drew stands under its noise, and the next is drawn without these riders",
    },
    {"what": "this receipt and its log events", "why": "they prove the erasure and name nobody"},
]
METHOD = [
    "every personal table of the catalogue was searched again after the deletion and held no row of the riders",
    "every text, JSON and blob column of the store was searched for the IDs as whole values",
    "the rows left were copied into a new file, and compared table by table with the old one by count and digest",
    "nothing but these rows was written into the new file: every column holds as many physical as logical rows",
    "parts that held the riders were copied without them into new files, compared in the same way, and listed instead",
    "the new file replaced the old one only after these checks; the old one is overwritten and removed",
]


def bind(rider: str) -> tuple[str, str]:
    """A new nonce and the binding it gives with the ID, both as hex."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce.hex(), binding(nonce.hex(), rider)


def binding(nonce: str, rider: str) -> str:
    """What a receipt lists among its bindings if it is about this rider."""
    return tagged(BINDING_TAG, bytes.fromhex(nonce), rider.encode(errors="surrogatepass"))


def read_receipt(connection: duckdb.DuckDBPyConnection, receipt_id: str) -> ErasureReceipt:
    """A completed receipt, with the log head that completed it."""
    [(core, completed_at, verification)] = rows(
        connection,
        "SELECT receipt, completed_at, verification FROM ledger.receipts WHERE receipt_id = ?",
        [receipt_id],
    )
    heads = [
        event.head
        for event in read_log(connection)
        if event.kind == "erasure-completed" and event.content["receipt_id"] == receipt_id
    ]
    document = json.loads(core) | {
        "completed_at": instant(completed_at),
        "verification": json.loads(verification),
        "log_head": heads[-1],
    }
    return ErasureReceipt.model_validate_json(json.dumps(document))
