"""The command that gives people what is remembered as a file."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from .command_types import ChatRequest, Command, Free
from .memory import ChatMemory


class Exporting:
    """Sends a chat's memory as a file, or leaves it for the operator.

    Args:
        memory: Has what was said sent.
        folder: Where files go.
    """

    def __init__(self, memory: ChatMemory, folder: Path) -> None:
        self._memory = memory
        self._folder = folder

    @property
    def commands(self) -> Sequence[Command]:
        """Rows of the table."""
        return (
            Command(
                "export", "导出", self._export, rights="private", needs="stored", is_limited=True
            ),
        )

    async def _export(self, request: ChatRequest) -> str:
        texts, caller, scope = request.texts, request.caller, request.scope
        # In a group everybody would get the file; there it is left for the operator.
        send = caller.send_file if scope.kind == "private" else None
        if send is None and not caller.is_admin:
            return Free(texts("export_no_files"))
        stamp = caller.now.strftime("%Y%m%d-%H%M%S")
        path = self._folder / f"export-{scope.chat[:8]}-{stamp}.jsonl"
        self._memory.hurry(scope)
        documents, memories = await request.stored.archive.export(scope, path)
        if not path.exists():
            return Free(texts("export_empty"))
        figures = {"documents": documents, "memories": memories}
        is_kept = False
        try:
            is_sent = await send(path) if send else False
            is_kept = caller.is_admin and not is_sent
        finally:  # also where somebody ends this meanwhile, it stays for the operator alone
            if not is_kept:
                await asyncio.to_thread(path.unlink, missing_ok=True)
        if is_kept:
            return texts("exported", name=path.name, **figures)
        return texts("export_sent" if is_sent else "export_not_sent", **figures)
