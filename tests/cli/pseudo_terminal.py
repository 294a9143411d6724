"""What a process sends to a terminal."""

from __future__ import annotations

import os
import re


def received(terminal: int) -> str:
    """Everything sent to a pseudo-terminal until its other end is closed, without control sequences; closes it."""
    seen = b""
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # Linux says so when the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(terminal)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.decode())
