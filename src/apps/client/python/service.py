"""Sessions as context managers, over the generated calls.

    with Service(url, api_key) as service:
        with service.session(duration="30m") as session:
            browser = playwright.chromium.connect_over_cdp(session.cdp_url)

A session is stopped when its block is left. ``service.client`` is the generated client, for every
other operation: ``list_sessions.sync(client=service.client)`` of ``browser_session_service.api``.
``AsyncService`` is the same for asyncio.
"""

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import httpx

from .api.sessions import create_session, get_session, stop_session
from .client import AuthenticatedClient
from .models import Problem, Session
from .types import Response

__all__ = ["AsyncService", "NoAnswer", "NotReady", "Service", "ServiceError", "checked"]

#: Seconds for one request: longer than the service waits for a browser before it answers.
REQUEST_SECONDS = 60.0
#: Seconds until a session has to be active.
WAIT_SECONDS = 120.0
#: Tries of one request that got no answer, or an answer that asks to come back.
TRIES = 4
#: Tries of each request that takes back a create without an answer.
TAKE_BACK_TRIES = 2
#: The longest pause in seconds that the service may ask for; after a longer one it is refused.
RETRY_AFTER_MAX = 30.0
PAUSE_FIRST, PAUSE_MAX = 0.25, 8.0
#: Pauses between two looks at a session that waits for its browser.
LOOK_FIRST, LOOK_MAX = 0.25, 2.0
#: What a generated call raises without an answer that it can read.
UNANSWERED = (httpx.RequestError, json.JSONDecodeError, UnicodeDecodeError)
LATER = frozenset(
    {
        "UNAVAILABLE",
        "RATE_LIMIT_EXCEEDED",
        "STREAM_LIMIT_EXCEEDED",
        "TRANSFER_LIMIT_EXCEEDED",
        "NO_SERVERS_AVAILABLE",
    }
)
ENDED = frozenset({"stopping", "stopped", "failed"})


class ServiceError(Exception):
    """The service refused a request; ``error`` is a name of the API's table of errors."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.error}: {problem.message}")
        self.error: str = problem.error
        self.code: int = problem.code
        self.context: dict[str, Any] = problem.context.to_dict()


class NoAnswer(httpx.TransportError):
    """No answer of the service arrived: it was unreachable or too slow, or a proxy answered.

    The request may have taken effect.
    """


class NotReady(Exception):
    """The session ended before it was active, or was not active in time; it has been stopped."""

    def __init__(self, session: Session) -> None:
        super().__init__(f"session {session.id} is {session.status}: {session.ended_reason}")
        self.session = session


def checked(response: Response[Any]) -> Any:
    """What a generated call answered. Raises ServiceError if it is a refusal, and NoAnswer."""
    if isinstance(response.parsed, Problem):
        raise ServiceError(response.parsed)
    if response.parsed is None and response.status_code >= 300:
        raise _not_ours(response.status_code, response.content)
    return response.parsed


def _not_ours(status: int, content: bytes) -> NoAnswer:
    text = content[:200].decode(errors="replace")
    return NoAnswer(f"status {int(status)} without an error of the service: {text}")


def _check_error(response: httpx.Response) -> None:
    """Raises NoAnswer for an error that is none of the service; generated calls cannot read it."""
    try:
        Problem.from_dict(response.json())
    except (ValueError, LookupError, TypeError) as error:
        raise _not_ours(response.status_code, response.content) from error


def _look(response: httpx.Response) -> None:
    if response.is_error:
        response.read()
        _check_error(response)


async def _look_async(response: httpx.Response) -> None:
    if response.is_error:
        await response.aread()
        _check_error(response)


def _backoff(attempt: int) -> float:
    return min(PAUSE_MAX, PAUSE_FIRST * 2**attempt)


def _pause_after(response: Response[Any], attempt: int, tries: int) -> float | None:
    """Seconds until the next try; None: the answer stands."""
    problem = response.parsed
    if not isinstance(problem, Problem) or problem.error not in LATER or attempt + 1 == tries:
        return None
    asked = float(response.headers.get("retry-after", 0))
    return max(_backoff(attempt), asked) if asked <= RETRY_AFTER_MAX else None


def _pause_without(error: Exception, attempt: int, tries: int) -> float:
    """Seconds until the next try of what got no answer. Raises NoAnswer after the last try."""
    if attempt + 1 < tries:
        return _backoff(attempt)
    if isinstance(error, NoAnswer):
        raise error
    raise NoAnswer(f"{type(error).__name__}: {error}") from error


@contextmanager
def _noting(error: BaseException, session_id: str) -> Iterator[None]:
    """Notes at the error that the session was not stopped: the error itself matters more."""
    try:
        yield
    except Exception as failure:
        error.add_note(f"{session_id} was not stopped: {failure!r}")


class _Asked:
    """The body of a create as it was asked: CreateSession leaves out what it does not know."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def to_dict(self) -> dict[str, Any]:
        return self._fields


def _client(url: str, api_key: str, options: dict[str, Any]) -> AuthenticatedClient:
    options.setdefault("timeout", httpx.Timeout(REQUEST_SECONDS))
    client = AuthenticatedClient(base_url=url.rstrip("/"), token=api_key, **options)
    client.get_httpx_client().event_hooks["response"].append(_look)
    client.get_async_httpx_client().event_hooks["response"].append(_look_async)
    return client


class Service:
    """The service at ``url``, for one API key. ``options`` are those of AuthenticatedClient."""

    def __init__(self, url: str, api_key: str, **options: Any) -> None:
        self.client = _client(url, api_key, options)

    def __enter__(self) -> "Service":
        self.client.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.client.__exit__(*exception)

    @contextmanager
    def session(self, *, wait: float = WAIT_SECONDS, **fields: Any) -> Iterator[Session]:
        """An active session with the fields of CreateSession; stopped when the block is left."""
        session = self.create(wait=wait, **fields)
        try:
            yield session
        except BaseException as error:
            with _noting(error, session.id):
                self.stop(session.id)
            raise
        self.stop(session.id)

    def create(self, *, wait: float = WAIT_SECONDS, **fields: Any) -> Session:
        """Creates a session and waits at most ``wait`` seconds until it is active.

        Raises ServiceError, NoAnswer, or NotReady; then the session has been stopped. Where it is
        interrupted, or gets no answer, it stops what it may have made.
        """
        key = str(uuid.uuid4())
        asked = {"body": _Asked(fields), "idempotency_key": key}
        session: Session | None = None
        try:
            session = self._call(create_session, **asked)
            end, pause = time.monotonic() + wait, LOOK_FIRST
            while session.status != "active":
                if session.status in ENDED or time.monotonic() > end:
                    raise NotReady(session)
                time.sleep(pause)
                pause = min(LOOK_MAX, pause * 2)
                session = self._call(get_session, id=session.id)
        except BaseException as error:
            # The caller has no id by which to stop it.
            if session is not None:
                with _noting(error, session.id):
                    self.stop(session.id)
            elif not isinstance(error, ServiceError):
                self._take_back(asked)
            raise
        return session

    def _take_back(self, asked: dict[str, Any]) -> None:
        """Stops the session of a create without an answer: its key names it when asked again."""
        with suppress(Exception):
            asked = {**asked, "prefer": "respond-async"}
            session = self._call(create_session, tries=TAKE_BACK_TRIES, **asked)
            self._call(stop_session, tries=TAKE_BACK_TRIES, id=session.id)

    def stop(self, session_id: str) -> None:
        """Stops a session; one that has ended already stays as it is."""
        self._call(stop_session, id=session_id)

    def _call(self, operation: Any, *, tries: int = TRIES, **arguments: Any) -> Any:
        for attempt in range(tries):
            try:
                response = operation.sync_detailed(client=self.client, **arguments)
                pause = _pause_after(response, attempt, tries)
                if pause is None:
                    return checked(response)
            except UNANSWERED as error:
                pause = _pause_without(error, attempt, tries)
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")


class AsyncService:
    """Service for asyncio."""

    def __init__(self, url: str, api_key: str, **options: Any) -> None:
        self.client = _client(url, api_key, options)

    async def __aenter__(self) -> "AsyncService":
        await self.client.__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self.client.__aexit__(*exception)

    @asynccontextmanager
    async def session(
        self, *, wait: float = WAIT_SECONDS, **fields: Any
    ) -> AsyncIterator[Session]:
        """An active session with the fields of CreateSession; stopped when the block is left."""
        session = await self.create(wait=wait, **fields)
        try:
            yield session
        except BaseException as error:
            with _noting(error, session.id):
                await asyncio.shield(self.stop(session.id))
            raise
        await asyncio.shield(self.stop(session.id))

    async def create(self, *, wait: float = WAIT_SECONDS, **fields: Any) -> Session:
        """As Service.create; a cancel stops what it may have made, too."""
        key = str(uuid.uuid4())
        asked = {"body": _Asked(fields), "idempotency_key": key}
        session: Session | None = None
        try:
            session = await self._call(create_session, **asked)
            end, pause = time.monotonic() + wait, LOOK_FIRST
            while session.status != "active":
                if session.status in ENDED or time.monotonic() > end:
                    raise NotReady(session)
                await asyncio.sleep(pause)
                pause = min(LOOK_MAX, pause * 2)
                session = await self._call(get_session, id=session.id)
        except BaseException as error:
            if session is not None:
                with _noting(error, session.id):
                    await asyncio.shield(self.stop(session.id))
            elif not isinstance(error, ServiceError):
                await asyncio.shield(self._take_back(asked))
            raise
        return session

    async def _take_back(self, asked: dict[str, Any]) -> None:
        """As Service._take_back."""
        with suppress(Exception):
            asked = {**asked, "prefer": "respond-async"}
            session = await self._call(create_session, tries=TAKE_BACK_TRIES, **asked)
            await self._call(stop_session, tries=TAKE_BACK_TRIES, id=session.id)

    async def stop(self, session_id: str) -> None:
        """As Service.stop."""
        await self._call(stop_session, id=session_id)

    async def _call(self, operation: Any, *, tries: int = TRIES, **arguments: Any) -> Any:
        for attempt in range(tries):
            try:
                response = await operation.asyncio_detailed(client=self.client, **arguments)
                pause = _pause_after(response, attempt, tries)
                if pause is None:
                    return checked(response)
            except UNANSWERED as error:
                pause = _pause_without(error, attempt, tries)
            await asyncio.sleep(pause)
        raise AssertionError("the last try returns or raises")
