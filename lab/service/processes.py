"""Services in separate processes, which a trial may stop, freeze or kill."""

from __future__ import annotations

import json
import os
import resource
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from driftsack.core.errors import DriftsackError

START_LIMIT = 120.0  # seconds until a service is ready; kernels may have to be compiled


class TrialError(DriftsackError):
    """A trial could not be carried out."""


def free_port() -> int:
    """Return an unused port."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has used, in all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Process:
    """``driftsack serve`` on a store, or the application that does nothing.

    Args:
        directory: Where its output is written.
        store: The store; None for the application that does nothing.
        port: The port; None for any.
        lease: Seconds for which it owns campaigns unless it renews the lease.
        snapshot_every: Events between two snapshots.
        slower: Milliseconds by which a commit on SQLite is delayed, as on a slower disk.
        direct: Whether frequent requests are answered without an ASGI task, as usual.
        place: A network namespace and an address in it; None for this machine.

    Attributes:
        url: Where it answers.
        key: The first key, if this process made it.
        took: Seconds from the start until it was ready.
    """

    def __init__(
        self,
        directory: Path,
        store: str | None,
        port: int | None = None,
        lease: float = 10.0,
        snapshot_every: int = 10_000,
        slower: float = 0.0,
        direct: bool = True,
        place: tuple[str, str] | None = None,
    ) -> None:
        self._port = port or free_port()
        network, host = place or ("", "127.0.0.1")
        self.url = f"http://{host}:{self._port}"
        command = [*(("ip", "netns", "exec", network) if network else ()), sys.executable, "-m"]
        if store is None:
            command += ["uvicorn", "lab.service.nothing:app", "--no-access-log", "--log-level", "error"]
        else:
            program = ["driftsack"] if direct else ["lab.service.asgi_only"]
            slow = ["lab.service.slow_disk", str(slower)]
            command += [*(slow if slower else program), "serve", "--store", store]
        extra = {"DRIFTSACK_LEASE": str(lease), "DRIFTSACK_SNAPSHOT_EVERY": str(snapshot_every)}
        self._output = directory / f"{self._port}.out"
        begin = time.monotonic()
        with self._output.open("wb") as out, (directory / f"{self._port}.err").open("ab") as errors:
            self._process = subprocess.Popen(
                [*command, "--host", host, "--port", str(self._port)],
                stdout=out,
                stderr=errors,
                env={**os.environ, **extra},
            )
        self._wait("/healthz" if store is None else "/readyz")
        self.took = time.monotonic() - begin
        self.key = self._output.read_text().strip()

    def _wait(self, path: str) -> None:
        end = time.monotonic() + START_LIMIT
        while time.monotonic() < end:
            if self._process.poll() is not None:
                raise TrialError(f"the service ended with code {self._process.returncode}; see {self._output.parent}.")
            try:
                with urllib.request.urlopen(self.url + path, timeout=1):  # noqa: S310
                    return
            except OSError:
                time.sleep(0.02)
        raise TrialError(f"the service was not ready within {START_LIMIT:g} seconds.")

    def signal(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def limit_files(self, size: int) -> None:
        """Let writes beyond a file size fail, as on a full disk; ``RLIM_INFINITY`` removes the limit."""
        resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def processor_seconds(self) -> float:
        """The processor time that the process has used, in all its threads."""
        return processor_seconds(self._process.pid)

    def kill(self) -> None:
        """Kill the process (SIGKILL)."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Terminate the process after it has drained its requests."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()


def call(url: str, key: str, method: str, path: str, body: Any = None, timeout: float = 10.0) -> tuple[int, Any]:
    """Send a request and return the status and the decoded answer; the status is 0 if there is none."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    headers |= {"idempotency-key": secrets.token_hex(16)} if method == "POST" else {}
    request = urllib.request.Request(url + path, data, headers, method=method)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"{}")
    except OSError:
        return 0, {}


CONFIG: dict[str, Any] = {
    "arms": ["small", "large"],
    "budget": {"usd": "1000000"},
    "cost_max": {"usd": "0.1"},
    "horizon": 10**9,
    "policy": {"policy": "UniformRandom"},
    "lease": 3600,
}
"""The campaign of the trials, with a cheap policy, since the service is measured."""


def open_campaign(url: str, key: str, name: str = "chat", **settings: Any) -> None:
    """Open a campaign."""
    body = {"name": name, "config": {**CONFIG, **settings}}
    status, answer = call(url, key, "POST", "/v1/campaigns", body, START_LIMIT)  # kernels may have to be compiled
    if status != 201:
        raise TrialError(f"the campaign could not be opened: {status} {answer}.")
