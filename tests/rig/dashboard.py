"""A client of AstrBot's web interface (the newest AstrBot; its API differs in old versions)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from rig.polling import PATIENCE, eventually

USERNAME = "astrbot"
PASSWORD = "Loopback-Pass-123!"
TIMEOUT_SECONDS = PATIENCE


class DashboardError(Exception):
    """AstrBot refused; the message says what and why."""


@dataclass(frozen=True)
class ChatReply:
    """The answer in the web chat.

    Attributes:
        text: What the bot said.
        session: The chat session, to go on in it.
        events: Every event of the stream.
    """

    text: str
    session: str
    events: list[dict[str, Any]]

    @property
    def umo(self) -> str:
        """The session's unified message origin."""
        return f"webchat:FriendMessage:webchat!{USERNAME}!{self.session}"

    def saved_id(self, kind: str) -> int:
        """Return the id of the stored message: kind `user_message_saved` or `message_saved`."""
        found = [event for event in self.events if event.get("type") == kind]
        return int(found[-1]["data"]["id"])


class Dashboard:
    """AstrBot's web interface; it logs in at the first call."""

    def __init__(self, port: int) -> None:
        """Make the client.

        Args:
            port: The loopback port of the web interface.
        """
        self._client = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}",
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
            verify=False,
        )
        self._logged_in = False

    @property
    def url(self) -> str:
        """Its address, for a browser."""
        return str(self._client.base_url)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def login(self) -> None:
        """Log in (again). Tokens survive a restart of AstrBot."""
        credentials = {"username": USERNAME, "password": PASSWORD}
        response = await self._client.post("/api/v1/auth/login", json=credentials)
        token = _data_of(response)["token"]
        self._client.headers["Authorization"] = f"Bearer {token}"
        self._logged_in = True

    async def call(self, method: str, path: str, **request: Any) -> Any:
        """Call the API.

        Args:
            method: The HTTP method.
            path: The path below `/api/v1`.
            request: More for httpx, such as `json` and `params`.

        Returns:
            The `data` of the answer.

        Raises:
            DashboardError: If AstrBot refused.
        """
        if not self._logged_in:
            await self.login()
        return _data_of(await self._client.request(method, f"/api/v1{path}", **request))

    # --- Plugins ----------------------------------------------------------------------------------

    async def plugins(self) -> list[dict[str, Any]]:
        """Return the plugins that are loaded."""
        found: list[dict[str, Any]] = await self.call("GET", "/plugins")
        return found

    async def failed_plugins(self) -> dict[str, Any]:
        """Return the plugins that could not be loaded, by folder, with the error."""
        found: dict[str, Any] = await self.call("GET", "/plugins/failed")
        return found

    async def plugin_config(self, plugin: str) -> dict[str, Any]:
        """Return a plugin's configuration."""
        config: dict[str, Any] = (await self._plugin_configs(plugin))["config"]
        return config

    async def plugin_schema(self, plugin: str) -> dict[str, Any]:
        """Return the description of a plugin's configuration, as the web interface gets it."""
        schema: dict[str, Any] = (await self._plugin_configs(plugin))["metadata"]
        return schema

    async def _plugin_configs(self, plugin: str) -> dict[str, Any]:
        found: dict[str, Any] = await self.call(
            "GET", "/plugins/config", params={"plugin_id": plugin}
        )
        return found

    async def save_plugin_config(self, plugin: str, config: dict[str, Any]) -> None:
        """Save a plugin's whole configuration, which reloads the plugin."""
        await self.call("PUT", "/plugins/config", json={"plugin_id": plugin, "config": config})

    async def reload_plugin(self, plugin: str) -> None:
        """Reload a plugin's code."""
        await self.call("POST", "/plugins/reload", json={"plugin_id": plugin})

    async def enable_plugin(self, plugin: str, enabled: bool = True) -> None:
        """Switch a plugin on or off."""
        choice = {"plugin_id": plugin, "enabled": enabled}
        await self.call("PATCH", "/plugins/enabled", json=choice)

    async def install_plugin(self, archive: Path) -> None:
        """Install a plugin from a zip file, or replace the plugin of that name by it."""
        content = await asyncio.to_thread(archive.read_bytes)
        upload = {"file": (archive.name, content, "application/zip")}
        await self.call("POST", "/plugins/install/upload", files=upload)

    async def uninstall_plugin(
        self, plugin: str, *, delete_config: bool = False, delete_data: bool = False
    ) -> None:
        """Remove a plugin, and its configuration and data if so wished."""
        await self.call(
            "DELETE",
            "/plugins/by-id",
            params={"plugin_id": plugin},
            json={"delete_config": delete_config, "delete_data": delete_data},
        )

    # --- AstrBot as a whole -----------------------------------------------------------------------

    async def restart(self) -> None:
        """Restart AstrBot from the web interface, and wait until it answers again.

        It stays the same process, and plugins are not told.
        """
        before = await self._start_time()
        await self.call("POST", "/system/restart")
        await eventually(lambda: self._started_after(before), PATIENCE, "AstrBot is back")

    async def _started_after(self, before: int) -> bool:
        try:
            return await self._start_time() > before
        except (httpx.TransportError, DashboardError):
            return False

    async def _start_time(self) -> int:
        return int((await self.call("GET", "/stats/start-time"))["start_time"])

    async def set_session_rule(self, umo: str, key: str, value: Any) -> None:
        """Set a rule of one session, such as `session_service_config`."""
        rule = {"umo": umo, "rule_key": key, "rule_value": value}
        await self.call("POST", "/sessions/rules", json=rule)

    async def disable_plugin_in_session(self, umo: str, plugin: str) -> None:
        """Switch a plugin off in one session by the session rule."""
        value = {"enabled_plugins": [], "disabled_plugins": [plugin]}
        await self.set_session_rule(umo, "session_plugin_config", value)

    async def delete_session_rules(self, umo: str) -> None:
        """Drop all rules of a session."""
        await self.call("POST", "/sessions/rules/delete", json={"umo": umo})

    async def save_config(self, **changes: Any) -> None:
        """Change settings of AstrBot itself; they count from the next message on."""
        path = "/config-profiles/default"
        config = (await self.call("GET", path))["config"]
        await self.call("PUT", path, json={**config, **changes})

    async def run_cron_job(self, umo: str, note: str) -> str:
        """Make a scheduled task of the agent and run it now.

        The agent runs in the background, and its answer goes nowhere unless it calls a tool that
        sends it.

        Args:
            umo: The session that it works for.
            note: What the agent is to do.

        Returns:
            The id of the job.
        """
        job = {"name": "rig", "cron_expression": "0 0 1 1 *", "session": umo, "note": note}
        job_id = str((await self.call("POST", "/cron/jobs", json=job))["job_id"])
        await self.call("POST", f"/cron/jobs/{job_id}/run")
        return job_id

    # --- The web chat -----------------------------------------------------------------------------

    async def chat(
        self,
        text: str,
        session: str | None = None,
        *,
        streaming: bool = True,
        locale: str = "zh-CN",
    ) -> ChatReply:
        """Send a message in the web chat and gather the answer.

        Args:
            text: The message.
            session: The chat session; None for a new one.
            streaming: Whether the answer is to be streamed, as the web page asks by default.
            locale: The language of the web page.

        Returns:
            The answer.
        """
        session = session or await self.new_chat()
        body = {
            "message": [{"type": "plain", "text": text}],
            "flags": {"enable_streaming": streaming},
            "locale": locale,
        }
        return await self._send_chat(body, session)

    async def new_chat(self) -> str:
        """Open a chat session and return its id."""
        return str((await self.call("GET", "/chat/sessions/new"))["session_id"])

    async def edit_chat(self, reply: ChatReply, text: str) -> ChatReply:
        """Edit the user's message of the last turn and have it answered anew, as the page does."""
        message = reply.saved_id("user_message_saved")
        content = {"type": "user", "message": [{"type": "plain", "text": text}]}
        path = f"/chat/sessions/{reply.session}/messages/{message}"
        edited = (await self.call("PATCH", path, json={"content": content}))["message"]
        body = {
            "message": content["message"],
            "_skip_user_history": True,
            "_llm_checkpoint_id": edited["llm_checkpoint_id"],
        }
        return await self._send_chat(body, reply.session)

    async def regenerate_chat(self, reply: ChatReply) -> ChatReply:
        """Have the last turn's answer made anew."""
        message = reply.saved_id("message_saved")
        path = f"/api/v1/chat/sessions/{reply.session}/messages/{message}/regenerate"
        return await self._gather(path, {}, reply.session)

    async def _send_chat(self, body: dict[str, Any], session: str) -> ChatReply:
        # The old path: its successor takes API keys only.
        return await self._gather("/api/chat/send", {**body, "session_id": session}, session)

    async def _gather(self, path: str, body: dict[str, Any], session: str) -> ChatReply:
        if not self._logged_in:
            await self.login()
        async with self._client.stream("POST", path, json=body) as response:
            events = [event async for event in _events(response)]
        return ChatReply(_chat_text(events), session, events)


def _data_of(response: httpx.Response) -> Any:
    try:
        answer = response.json()
    except ValueError:
        answer = {}
    if response.is_error or answer.get("status") != "ok":
        reason = answer.get("message") or response.text[:200]
        raise DashboardError(f"{response.request.url.path}: {response.status_code} {reason}")
    return answer.get("data")


async def _events(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        await response.aread()
        _data_of(response)
        return
    async for line in response.aiter_lines():
        if line.startswith("data:"):
            yield json.loads(line.removeprefix("data:"))


def _chat_text(events: list[dict[str, Any]]) -> str:
    """Put the answer's text together; what the tools said and thoughts are left out."""
    return "".join(
        event["data"]
        for event in events
        if event.get("type") == "plain" and event.get("chain_type") in (None, "", "agent_text")
    )
