"""`selftest`: whether everything is in order, for those who run the bot."""

from __future__ import annotations

from collections.abc import Sequence

from .command_types import Command, Request
from .scope import ScopeState
from .selftest import Finding, SelfTest
from .status import Status
from .texts import Texts

_FULL = frozenset({"full", "全部", "完整"})


class Testing:
    """Tests the bank and what the plugin keeps for it.

    Args:
        selftest: Tests the bank; None without a server.
        state: Salt and switches.
        status: Says what is wrong with the settings.
    """

    def __init__(self, selftest: SelfTest | None, state: ScopeState, status: Status) -> None:
        self._selftest = selftest
        self._state = state
        self._status = status

    @property
    def commands(self) -> Sequence[Command]:
        """Rows of the table."""
        return (
            Command(
                "selftest",
                "自检",
                self._test,
                elsewhere=self._test,
                has_argument=True,
                rights="admins",
                is_limited=True,
                working="working_selftest",
            ),
        )

    async def _test(self, request: Request) -> str:
        texts, argument = request.texts, request.argument.lower()
        if argument and argument not in _FULL:
            return texts("self_test_usage")
        findings = [self._salt(texts)]
        if self._selftest is None:
            problem = self._status.no_memory(request.caller.scope, texts)
            findings.append(Finding(problem, is_good=False))
        elif argument:
            findings += await self._selftest.trial(texts)
        else:
            findings += await self._selftest.look(texts)
        lines = [texts("self_test_title"), *(one.line() for one in findings)]
        if self._selftest and not argument:
            lines.append(texts("self_test_more"))
        return "\n".join(lines)

    def _salt(self, texts: Texts) -> Finding:
        if self._state.fault:
            return Finding(texts(self._state.fault), is_good=False)
        if self._state.salt_lost:
            return Finding(texts("salt_lost"), is_good=False)
        return Finding(texts("status_salt", fingerprint=self._state.fingerprint))
