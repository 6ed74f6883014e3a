"""``direct_protocol``: answers frequent requests without an ASGI task.

For each request ASGI needs a task, a future and several messages, which together cost more than a decision. If the body
of a request on a direct route arrives together with its header, the request is carried out at once, and the response is
written when the changes are durable. All other requests go through ASGI: slow, large and pipelined ones, and those of
clients that do not read their responses.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from driftsack.service.web.api.app import Application
from driftsack.service.web.api.limits import LimitedProtocol
from driftsack.service.web.api.requests import Target
from driftsack.service.web.api.responses import CLOSE, Response


class DirectProtocol(LimitedProtocol):
    """A connection whose requests on direct routes bypass ASGI."""

    application: Application  # set by ``direct_protocol``

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._held: tuple[RequestResponseCycle, Target] | None = None

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Hold a request that may be answered directly until its body was read."""
        usual = app is not self.app or self.pipeline or self.flow.write_paused or cycle.waiting_for_100_continue
        target = None if usual else self.application.direct_target(cycle.scope)  # type: ignore[arg-type]
        if target is None or not cycle.more_body:
            super()._start_asgi_task(cycle, app)
        else:
            self._held = (cycle, target)

    def on_message_complete(self) -> None:
        """Answer a request that is held."""
        if self._held is None:
            super().on_message_complete()
            return
        (cycle, target), self._held = self._held, None
        cycle.more_body = False
        raw = bytes(cycle.body)
        self.application.answer_directly(target, cycle.scope, raw, lambda response: self.reply(cycle, response))  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        """Read; a request whose body is incomplete goes through ASGI, where it can wait for the rest."""
        super().data_received(data)
        if self._held is not None:
            (cycle, _), self._held = self._held, None
            super()._start_asgi_task(cycle, self.app)

    def reply(self, cycle: RequestResponseCycle, response: Response) -> None:
        """Write a response and continue with the next request."""
        if cycle.disconnected or self.transport.is_closing():  # an exception would stop the other waiters
            return
        if CLOSE in response.headers:
            cycle.keep_alive = False
        cycle.response_started = cycle.response_complete = True
        self.transport.write(self.serialised(response, cycle.keep_alive))
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()


def direct_protocol(app: Application) -> type[DirectProtocol]:
    """Return the protocol class for connections to an application."""
    return type("Direct", (DirectProtocol,), {"application": app})
