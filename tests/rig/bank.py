"""A look into a memory bank, straight at the server, for tests to check what is really stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol, Self
from urllib.parse import quote

import httpx

from rig.polling import PATIENCE, eventually

_PAGE = 100
_REFRESH = "refresh_mental_model"
"""One whose model was deleted meanwhile fails and is tried again every minute: it is no work."""
_UNSETTLED = ("pending", "processing")


class Address(Protocol):
    """Where a server is."""

    @property
    def url(self) -> str:
        """Its base address."""

    @property
    def api_key(self) -> str:
        """Its key."""


class Bank:
    """One bank of a server. A bank that does not exist reads as an empty one.

    Use it as an async context manager, or call `close()`.
    """

    def __init__(self, server: Address, bank_id: str) -> None:
        """Address a bank; it need not exist."""
        self.bank_id = bank_id
        self.url = f"{server.url}/v1/default/banks/{quote(bank_id, safe='')}"
        self._client = httpx.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Bearer {server.api_key}"},
            timeout=PATIENCE,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send any request below the bank's address and return the answer, good or bad."""
        return await self._client.request(method, path, **options)

    async def create(self, **settings: Any) -> None:
        """Make the bank, or change its settings."""
        (await self._client.put(self.url, json=settings)).raise_for_status()

    async def retain(self, *items: dict[str, Any], settle: float | None = PATIENCE) -> None:
        """Store items, and wait until they are.

        Args:
            items: The items, as the server takes them.
            settle: How long to wait until all is processed; None not to wait.
        """
        body = {"items": list(items), "async": True}
        (await self._client.post("/memories", json=body)).raise_for_status()
        if settle is not None:
            await self.settled(settle)

    async def recall(
        self, query: str, tags: Sequence[str] = (), **options: Any
    ) -> list[dict[str, Any]]:
        """Return what a recall finds, with all of these tags or in the whole bank."""
        body: dict[str, Any] = {"query": query, "include": {"entities": None}, **options}
        if tags:
            body |= {"tags": list(tags), "tags_match": "all_strict"}
        response = await self._client.post("/memories/recall", json=body)
        if _is_missing(response):
            return []
        results: list[dict[str, Any]] = response.raise_for_status().json()["results"]
        return results

    async def reflect(self, query: str, tags: Sequence[str] = (), **options: Any) -> dict[str, Any]:
        """Return the answer to a question, with all of these tags or from the whole bank."""
        body: dict[str, Any] = {"query": query, "exclude_mental_models": True, **options}
        if tags:
            body |= {"tags": list(tags), "tags_match": "all_strict"}
        response = await self._client.post("/reflect", json=body)
        answer: dict[str, Any] = response.raise_for_status().json()
        return answer

    async def documents(
        self, tags: Sequence[str] = (), *, texts: bool = False
    ) -> list[dict[str, Any]]:
        """Return all documents, with all of these tags or of the whole bank.

        Args:
            tags: The tags.
            texts: Return them in full, with their `original_text`; one that vanishes while they
                are read is left out.
        """
        listed = [item async for item in self._pages("/documents", "items", tags)]
        if not texts:
            return listed
        answers = [await self._get_document(item["id"]) for item in listed]
        return [one.raise_for_status().json() for one in answers if not _is_missing(one)]

    async def stored(
        self, text: str, tags: Sequence[str] = (), timeout: float = PATIENCE
    ) -> list[dict[str, Any]]:
        """Wait until a text is stored.

        Args:
            text: A part of what is stored.
            tags: Look at documents with all of these tags only.
            timeout: Seconds until giving up.

        Returns:
            The documents that hold it, in full.

        Raises:
            AssertionError: If there was none in time.
        """

        async def found() -> list[dict[str, Any]]:
            documents = await self.documents(tags, texts=True)
            return [one for one in documents if text in one["original_text"]]

        return await eventually(found, timeout, f"a document with {text}", 0.3)

    async def document(self, document_id: str) -> dict[str, Any]:
        """Return a document in full."""
        response = await self._get_document(document_id)
        document: dict[str, Any] = response.raise_for_status().json()
        return document

    async def _get_document(self, document_id: str) -> httpx.Response:
        return await self._client.get(f"/documents/{quote(document_id, safe='')}")

    async def memories(
        self, tags: Sequence[str] = (), fact_type: str | None = None
    ) -> list[dict[str, Any]]:
        """Return all memories, with all of these tags or of the whole bank.

        Args:
            tags: The tags.
            fact_type: Only `world`, `experience` or `observation`.
        """
        params = {} if fact_type is None else {"type": fact_type}
        return [item async for item in self._pages("/memories/list", "items", tags, params)]

    async def operations(self, status: str | None = None) -> list[dict[str, Any]]:
        """Return all operations, or those with this status."""
        params = {} if status is None else {"status": status}
        return [item async for item in self._pages("/operations", "operations", (), params)]

    async def settled(self, timeout: float = PATIENCE) -> None:
        """Wait until no operation is pending or under way, consolidation included.

        Raises:
            AssertionError: If that takes longer. An operation that failed for now counts as
                pending: the server tries it again after a minute.
        """
        await eventually(self._is_settled, timeout, f"bank {self.bank_id} to settle", 0.1)

    async def delete(self) -> None:
        """Delete the bank with all that is in it."""
        (await self._client.delete(self.url)).raise_for_status()

    async def _is_settled(self) -> bool:
        # One snapshot of all counts: an operation that ends may leave a new one behind.
        response = await self._client.get("/stats", params={"refresh": "true"})
        if _is_missing(response):
            return True
        counts = response.raise_for_status().json()["operations_by_status"]
        if not any(counts.get(status) for status in _UNSETTLED):
            return True
        waiting = [one for status in _UNSETTLED for one in await self.operations(status)]
        return bool(waiting) and all(one["task_type"] == _REFRESH for one in waiting)

    async def _pages(
        self, path: str, key: str, tags: Sequence[str], params: dict[str, str] | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        query: dict[str, Any] = dict(params or {}, limit=_PAGE)
        if tags:
            query |= {"tags": list(tags), "tags_match": "all_strict"}
        offset = 0
        while True:
            response = await self._client.get(path, params={**query, "offset": offset})
            if _is_missing(response):
                return
            page = response.raise_for_status().json()[key]
            for item in page:
                yield item
            offset += len(page)
            if len(page) < _PAGE:
                return


def _is_missing(response: httpx.Response) -> bool:
    return response.status_code == httpx.codes.NOT_FOUND
