"""What makes others believe a store without its operator: signed heads, proofs, a witness."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import DEFAULT_STORE, DEFAULT_WAIT, FitOrRelease, Json, Store, Wait
from .output import note, print_json

TrustedKey = Annotated[
    Path | None,
    typer.Option("--trusted-key", help="A file with the log's public key, which you got by a way that you trust."),
]
Checkpoint = Annotated[
    Path | None, typer.Option("--checkpoint", help="A signed checkpoint that you kept (isuit head --signed).")
]


def head(
    signed: Annotated[bool, typer.Option("--signed", help="Print a signed checkpoint (C2SP tlog-checkpoint).")] = False,
    key: Annotated[bool, typer.Option("--key", help="Print the public key, for --trusted-key.")] = False,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Print the log's head; signed, it is what others keep to hold against the store later."""
    from isuit.service import heads

    report = heads.head(store, signed=signed, wait=wait)
    if json:
        print_json(report)
    elif key:
        print(report.key)
    elif report.checkpoint is not None:
        print(report.checkpoint, end="")
    else:
        print(f"{report.log_length} events, log head {report.log_head}")
        print(f"{report.origin}, tree root {report.root}")


def rotate_key(store: Store = DEFAULT_STORE, wait: Wait = DEFAULT_WAIT, json: Json = False) -> None:
    """Replace the key that signs heads; the old key signs for the new one, so that trust carries over."""
    from isuit.service import heads

    report = heads.rotate_key(store, wait)
    if json:
        print_json(report)
    else:
        print(report.key)
        note(f"the old key signed for this one and is gone\nlog head {report.log_head}")


def prove(
    fit: FitOrRelease = None,
    out: Annotated[Path, typer.Option("--out", help="The file to write.")] = Path("proof.json"),
    since: Annotated[
        Path | None, typer.Option("--since", help="A kept checkpoint: prove that the log extends it.")
    ] = None,
    store: Store = DEFAULT_STORE,
    wait: Wait = DEFAULT_WAIT,
    json: Json = False,
) -> None:
    """Prove without the store that a fit or release is in its log, or that the log extends a kept checkpoint."""
    from isuit.service import proving

    report = proving.prove(store, fit, out, since=since, wait=wait)
    if json:
        print_json(report)
        return
    if report.index is not None:
        print(f"event {report.index + 1} of {report.size}")
    if report.since is not None:
        print(f"{report.size} events extend the {report.since} of the kept checkpoint")
    print(f"{report.file}: {report.bytes} bytes")


def check_proof(
    file: Annotated[Path, typer.Argument(help="The file of isuit prove.")],
    trusted_key: TrustedKey = None,
    checkpoint: Checkpoint = None,
    json: Json = False,
) -> None:
    """Check a proof without the store; exit 1 if it does not prove what it says."""
    from isuit.service import proving

    report = proving.check_proof(file, trusted_key, checkpoint)
    if json:
        print_json(report)
    elif report.ok:
        print(f"{report.origin}, {report.size} events")
        if report.event is not None:
            about = [report.event["payload"][name] for name in ("fit_id", "release") if name in report.event["payload"]]
            print(f"holds event {report.event['sequence']}: {' '.join([report.event['kind'], *about])}")
        if report.extends is not None:
            print(f"extends the {report.extends} events of the kept checkpoint")
        if not report.trusted:
            note("note: the signature was held against the proof's own key; give one that you trust with --trusted-key")
    else:
        print("\n".join(report.problems))
    if not report.ok:
        raise typer.Exit(1)


def witness(
    proof: Annotated[
        Path | None,
        typer.Argument(metavar="[PROOF]", help="The file of isuit prove, with the checkpoint.", show_default=False),
    ] = None,
    state: Annotated[Path, typer.Option("--state", help="The witness's directory.")] = Path("isuit-witness"),
    trusted_key: TrustedKey = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the checkpoint with both signatures here.")] = None,
    serve: Annotated[
        int | None, typer.Option("--serve", help="Answer on this port of 127.0.0.1 (C2SP tlog-witness).", min=0)
    ] = None,
    json: Json = False,
) -> None:
    """Sign a store's checkpoint if it extends the last one seen, and refuse it if not (exit 1)."""
    from isuit.service import proving

    report = proving.witness(state, proof, trusted_key=trusted_key, out=out)
    if json:
        print_json(report)
    elif report.refused is not None:
        print(f"refused: {report.refused}")
    elif report.checkpoint is None:
        print(report.key)
    elif out is None:
        print(report.checkpoint, end="")
    else:
        print(f"signed {report.size} events of {report.origin}")
    if report.refused is not None:
        raise typer.Exit(1)
    if serve is not None:
        from isuit.service.witness_server import witness_server

        server = witness_server(state, serve)
        note(f"witness on http://127.0.0.1:{server.server_port}/add-checkpoint")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            server.server_close()
