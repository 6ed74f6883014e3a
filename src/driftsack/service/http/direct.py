"""``direct_protocol``: frequent requests are answered without a task of their own.

ASGI costs a task, a future and some messages for each request, which together are more than a decision. A request on a
direct route, whose body is there when its header was read, is carried out at once, and its answer is written when what
it changed is durable. All other requests go the usual way: slow, large or pipelined ones, and those of clients that do
not read their answers.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from driftsack.service.http.answers import CLOSE, Answer
from driftsack.service.http.app import Application, Place
from driftsack.service.http.limits import LimitedProtocol


class DirectProtocol(LimitedProtocol):
    """The protocol with a short cut."""

    application: Application  # set by ``direct_protocol``

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._held: tuple[RequestResponseCycle, Place] | None = None

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Hold a request that may be answered directly until its body was read."""
        usual = app is not self.app or self.pipeline or self.flow.write_paused or cycle.waiting_for_100_continue
        place = None if usual else self.application.direct_place(cycle.scope)  # type: ignore[arg-type]
        if place is None or not cycle.more_body:
            super()._start_asgi_task(cycle, app)
        else:
            self._held = (cycle, place)

    def on_message_complete(self) -> None:
        """Answer a request that is held."""
        if self._held is None:
            super().on_message_complete()
            return
        (cycle, place), self._held = self._held, None
        cycle.more_body = False
        raw = bytes(cycle.body)
        self.application.answer_directly(place, cycle.scope, raw, lambda answer: self._reply(cycle, answer))  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        """Read; a request whose body is not complete goes the usual way, where it may wait for the rest."""
        super().data_received(data)
        if self._held is not None:
            (cycle, _), self._held = self._held, None
            super()._start_asgi_task(cycle, self.app)

    def _reply(self, cycle: RequestResponseCycle, answer: Answer) -> None:
        """Write an answer, and go on as after any other."""
        if cycle.disconnected or self.transport.is_closing():  # a closed transport raises, and others wait too
            return
        if CLOSE in answer.headers:
            cycle.keep_alive = False
        cycle.response_started = cycle.response_complete = True
        self.transport.write(self._written(answer, cycle.keep_alive))
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()


def direct_protocol(app: Application) -> type[DirectProtocol]:
    """The protocol for connections to an application."""
    return type("Direct", (DirectProtocol,), {"application": app})
