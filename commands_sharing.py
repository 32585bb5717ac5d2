"""Commands by which a person has their private chat read in a group, and ends that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from .arguments import whole_number
from .command_types import ChatRequest, Command, Request
from .scope import ScopeState
from .sharing import CODE_DIGITS, SHARE_SECONDS, Sharing, tells_people


class SharingCommands:
    """`share` and `unshare`; both tell by the place what is meant.

    Args:
        sharing: Which private chat is read for whom.
        state: Who has opted out.
    """

    def __init__(self, sharing: Sharing, state: ScopeState) -> None:
        self._sharing = sharing
        self._state = state

    @property
    def commands(self) -> Sequence[Command]:
        """Rows of the table."""
        return (
            Command(
                "share",
                "共享",
                self._share,
                has_argument=True,
                needs="memory",
                is_limited=True,
                is_personal=True,
                is_verbatim=True,
            ),
            Command("unshare", "取消共享", self._unshare, has_argument=True, is_personal=True),
        )

    async def _share(self, request: ChatRequest) -> str:
        if request.scope.kind == "group":
            return await self._share_here(request)
        texts, person_id = request.texts, request.caller.person_id
        if not _is_private(request):
            return texts("share_not_here")
        if self._state.is_opted_out(request.scope, person_id):
            return texts("share_opted_out")
        listed = list(self._listed(request))
        if request.argument.strip():
            return "\n".join([texts("share_in_group"), *listed])
        code = self._sharing.offer(request.scope, person_id)
        how = "share_code" if tells_people(request.scope) else "share_code_unproven"
        minutes = round(SHARE_SECONDS / 60)
        return "\n".join(
            [texts(how, code=code, minutes=minutes), texts("share_seen_by_all"), *listed]
        )

    async def _share_here(self, request: ChatRequest) -> str:
        texts, person_id, typed = request.texts, request.caller.person_id, request.argument.strip()
        if not typed:
            is_met = self._sharing.is_met(request.scope, person_id)
            return texts("share_is_here" if is_met else "share_usage")
        number = whole_number(typed)
        code = "" if number is None or len(typed) != CODE_DIGITS else f"{number:0{CODE_DIGITS}}"
        if not await self._sharing.accept(request.scope, person_id, code):
            return texts("share_wrong")
        self._sharing.note_name(request.scope, request.caller.chat_name)
        return texts("share_done" if tells_people(request.scope) else "share_done_unproven")

    async def _unshare(self, request: ChatRequest) -> str:
        texts, scope, number = request.texts, request.scope, whole_number(request.argument)
        if scope.kind == "group":
            ended = await self._sharing.end_here(scope, request.caller.person_id)
            return texts("unshared_here" if ended else "unshare_nothing_here")
        if not _is_private(request):
            return texts("share_not_here")
        groups = self._sharing.groups(scope)
        if number is not None and not 0 < number <= len(groups):
            return "\n".join([texts("unshare_no_number"), *self._listed(request)])
        ended = await self._sharing.end(scope, groups[number - 1] if number else None)
        return texts("unshared", number=ended) if ended else texts("unshare_nothing")

    def _listed(self, request: ChatRequest) -> Iterator[str]:
        """Where this chat is shared: a line for each group, without any id."""
        texts, groups = request.texts, self._sharing.groups(request.scope)
        if not groups:
            return
        yield texts("share_title", number=len(groups))
        for number, share in enumerate(groups, start=1):
            since = datetime.fromtimestamp(share.since, request.caller.now.tzinfo)
            name = self._sharing.name(share) or texts("share_nameless")
            yield texts("share_line", number=number, name=name, date=since.date().isoformat())


def _is_private(request: Request) -> bool:
    """Whether this is a private chat, and no group whose id the platform does not tell."""
    return request.caller.place.kind == "private"
