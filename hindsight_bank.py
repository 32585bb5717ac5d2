"""The calls that are about a whole bank by their nature.

None of them returns a text of any chat, so each may go without tags; no other call may.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from .hindsight_answers import (
    as_dict,
    read_count,
    read_operation,
    read_stats,
    read_tags,
    read_use,
)
from .hindsight_http import Answer, HindsightConnection
from .hindsight_types import (
    AccessRefusedError,
    BankStats,
    Health,
    HindsightError,
    ModelUse,
    Operation,
    RequestRejectedError,
    RetryLaterError,
)

PAGE_SIZE = 100
LONG_PAGE = 1000
"""For lists of short rows; that of operations gives no more than 100 at once."""

MAX_OPERATIONS = 5000
MAX_PAGES = 20

RETAIN = "retain"
"""The kind of operation that writes a document; its parent would count it twice."""


CONSOLIDATION = "consolidation"
"""The kind that concludes from what is new."""


class HindsightBank(HindsightConnection):
    """A bank as a whole: its state, its settings, its queue, its figures."""

    async def check(self) -> Health:
        """Asks for one tag: proves address, key and bank with the cheapest request there is."""
        started = self._clock.monotonic()
        answer = await self._request(
            "GET", f"{self._bank}/tags", params={"limit": 1}, missing_is_empty=True
        )
        return Health(bank_exists=answer.status != 404, seconds=self._clock.monotonic() - started)

    async def version(self) -> str:
        """The server's version, or an empty text if it does not tell."""
        for path in ("/v1/version", "/version"):
            try:
                answer = await self._request("GET", path)
            except HindsightError:
                continue
            if version := answer.content.get("api_version"):
                return str(version)
        return ""

    async def config(self) -> Mapping[str, Any]:
        """The bank's settings."""
        answer = await self._request("GET", f"{self._bank}/config", missing_is_empty=True)
        return as_dict(answer.content.get("config"))

    async def configure(self, updates: Mapping[str, Any]) -> None:
        """Changes settings of the bank."""
        await self._request("PATCH", f"{self._bank}/config", json={"updates": dict(updates)})

    async def operations(
        self,
        status: str = "",
        *,
        kind: str = "",
        most: int = MAX_OPERATIONS,
        enough: Callable[[Sequence[Operation]], bool] = lambda _: False,
    ) -> list[Operation]:
        """What is in the server's queue or was there, newest first.

        Args:
            status: Only those with this status.
            kind: Only those of this kind, such as `RETAIN`.
            most: About so many at most.
            enough: Told what was found so far, whether to ask for no more.
        """
        wanted = {"status": status, "type": kind, "limit": PAGE_SIZE}
        query = {name: value for name, value in wanted.items() if value}
        found: list[Operation] = []
        for offset in range(0, most, PAGE_SIZE):
            answer = await self._list("operations", {**query, "offset": offset})
            rows = answer.rows("operations")
            found += [one for one in map(read_operation, rows) if one]
            if len(rows) < PAGE_SIZE or enough(found):
                break
        return found

    async def operation(self, operation_id: str) -> Operation | None:
        """One operation with the ids of its children, or None if there is none of this id."""
        answer = await self._request("GET", self._operation(operation_id), missing_is_empty=True)
        operation = read_operation(answer.content)
        is_there = answer.status != 404 and operation and operation.status != "not_found"
        return operation if is_there else None

    async def cancel(self, operation: Operation) -> None:
        """Cancels an operation; one that has ended meanwhile is no error."""
        path = self._operation(operation.operation_id)
        with contextlib.suppress(RequestRejectedError):
            await self._request("DELETE", path, missing_is_empty=True)

    async def forget_operation(self, operation_id: str) -> bool:
        """Deletes the record of an operation, which holds the text of what it wrote.

        Returns:
            False where there is no such record, or where the server cannot delete any.

        Raises:
            RequestRejectedError: It has not ended yet; to be cancelled first.
        """
        return await self._request_if_known("DELETE", f"{self._operation(operation_id)}/delete")

    async def retry_operation(self, operation_id: str) -> bool:
        """Has the server try a failed operation again; False where there is nothing to try."""
        try:
            return await self._request_if_known("POST", f"{self._operation(operation_id)}/retry")
        except RequestRejectedError:
            return False

    async def stats(self, *, refresh: bool = False) -> BankStats:
        """Figures of the bank; counted anew where that is asked for."""
        params = {"refresh": "true"} if refresh else {}
        return read_stats((await self._list("stats", params)).content)

    async def consolidate(self) -> None:
        """Has the server conclude from what is new, in the background."""
        await self._request("POST", f"{self._bank}/consolidate")

    async def recover_consolidation(self) -> int:
        """Lets facts that concluding failed for take part again; returns how many."""
        path = f"{self._bank}/consolidation/recover"
        answer = await self._request("POST", path, missing_is_empty=True)
        return read_count(answer.content.get("retried_count"))

    async def model_use(self, period: str = "1d") -> ModelUse | None:
        """Model calls of a period (`1d`, `7d` or `30d`).

        Returns:
            None where the server does not count, does not tell, or not to this key.
        """
        params = {"period": period, "call_type": "llm"}
        try:
            answer = await self._list("llm-requests/stats", params)
        except (AccessRefusedError, RetryLaterError) as error:
            if error.status in {403, 404, 405}:
                return None
            raise
        return read_use(answer.content)

    async def tags(self, pattern: str = "") -> dict[str, int]:
        """Tags and how many memories have each; `*` stands for anything in the pattern."""
        found: dict[str, int] = {}
        for page in range(MAX_PAGES):
            query = {"q": pattern, "limit": LONG_PAGE, "offset": page * LONG_PAGE}
            rows = (await self._list("tags", query)).rows("items")
            named = [as_dict(row) for row in rows]
            found |= {str(row.get("tag")): read_count(row.get("count")) for row in named}
            if len(rows) < LONG_PAGE:
                break
        return found

    async def observation_scopes(self) -> Counter[frozenset[str]]:
        """How many conclusions there are of each set of tags; without any: `frozenset()`."""
        found: Counter[frozenset[str]] = Counter()
        for page in range(MAX_PAGES):
            query = {"limit": LONG_PAGE, "offset": page * LONG_PAGE}
            answer = await self._list("observations/scopes", query)
            rows = [as_dict(row) for row in answer.rows("scopes")]
            for row in rows:
                found[read_tags(row)] += read_count(row.get("count"))
            # Some servers tell all at once, and again for each further page.
            if len(rows) != LONG_PAGE or "limit" in answer.ignored:
                break
        return found

    async def document_scopes(self) -> Counter[frozenset[str]]:
        """How many documents there are of each set of tags; without any: `frozenset()`."""
        found: Counter[frozenset[str]] = Counter()
        for page in range(MAX_PAGES):
            query = {"tags_match": "all", "limit": LONG_PAGE, "offset": page * LONG_PAGE}
            rows = (await self._list("documents", query)).rows("items")
            found.update(read_tags(as_dict(row)) for row in rows)
            if len(rows) < LONG_PAGE:
                break
        return found

    async def untagged_memories(self) -> int:
        """How many memories have no tag, so that any chat of a careless client could see them."""
        query = {"tags_match": "exact", "limit": 1}
        answer = await self._list("memories/list", query)
        return read_count(answer.content.get("total"))

    async def _list(self, path: str, params: Mapping[str, Any]) -> Answer:
        """What a path below the bank answers; a bank that does not exist yet is empty."""
        return await self._request(
            "GET", f"{self._bank}/{path}", params=params, missing_is_empty=True
        )

    def _operation(self, operation_id: str) -> str:
        return f"{self._bank}/operations/{quote(operation_id, safe='')}"
