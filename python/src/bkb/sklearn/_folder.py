"""Where temporary files are."""

from __future__ import annotations

import os
import shutil

MEMORY = "/dev/shm"
SPARE = 64 << 20  # bytes that stay free in memory


def temporary_parent(size: int) -> str | None:
    """Return the folder in memory if so many bytes fit there, or None for the usual one."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= size + SPARE:
        return MEMORY
    return None
