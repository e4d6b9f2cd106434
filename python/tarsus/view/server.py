"""The page and its frames over HTTP and WebSocket, on one port of this machine."""

import asyncio
import http
import json
import logging
import threading
from pathlib import Path

import tarsus

try:
    from websockets.asyncio.server import serve
    from websockets.datastructures import Headers
    from websockets.exceptions import ConnectionClosed
    from websockets.http11 import Response
except ImportError as error:
    raise ImportError('the live viewer needs the package "websockets": pip install "tarsus[view]"') from error

from .page import PAGE

MOST_PORT = 65535
MOST_CLIENTS = 256
MOST_ORDER = 1 << 16  # bytes
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
ANYWHERE = ("0.0.0.0", "::")


# Browsers open connections that they do not use; that is not an error.
LOG = logging.getLogger("tarsus.view")
LOG.addFilter(lambda record: "handshake" not in record.msg)


class Server:
    """A server in its own thread. Each client gets the newest frame as soon as it has taken the last one, so a slow client
    misses frames and delays nobody.

    greeting() returns the messages for a new client. on_order(order) is called in the server's thread with each message
    from a page.
    """

    def __init__(self, greeting, on_order, host="127.0.0.1", port=0, files=None):
        if not 0 <= port <= MOST_PORT:
            raise tarsus.ValueError(f"port: is {port}, expected 1 to {MOST_PORT}, or 0 for a free port")
        self.greeting, self.on_order, self.host, self.wanted_port = greeting, on_order, host, port
        self.files = {"/": (PAGE, "text/html; charset=utf-8"), **(files or {})}
        self.frame, self.texts = None, []
        self.clients = set()
        self.loop = asyncio.new_event_loop()
        self.started, self.failure = threading.Event(), None
        self.thread = threading.Thread(target=self._run, name="tarsus viewer", daemon=True)
        self.thread.start()
        self.started.wait()
        if self.failure:
            self.thread.join()
            failure, self.failure = self.failure, None
            try:
                raise failure
            finally:
                del failure  # its traceback leads here; the reference cycle would keep the viewer's data

    @property
    def url(self):
        host = "127.0.0.1" if self.host in ANYWHERE else self.host
        return f"http://{host}:{self.port}/"

    # -- from other threads --

    def publish(self, snapshot):
        """snapshot() makes a Frame. It is called in the server's thread, and only if a client takes the frame."""
        self._call(self._publish, _Frame(snapshot))

    def tell(self, message):
        """Sends a message, as JSON, to every page."""
        self._call(self._tell, json.dumps(message))

    def close(self):
        self._call(self.stop.set)
        self.thread.join(5)

    def _call(self, function, *arguments):
        try:
            self.loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            pass  # closed

    # -- in the loop's thread --

    def _run(self):
        try:
            self.loop.run_until_complete(self._serve())
        finally:
            self.loop.close()

    async def _serve(self):
        self.stop = asyncio.Event()
        try:
            server = await serve(self._client, self.host, self.wanted_port, process_request=self._request,
                                 max_size=MOST_ORDER, compression=None, ping_interval=20, ping_timeout=60,
                                 write_limit=1 << 16, close_timeout=1, server_header=None, logger=LOG)
        except Exception as error:  # any exception goes to the caller, who waits
            self.failure = error
            if isinstance(error, OSError):
                self.failure = OSError(error.errno, f"{self.host}:{self.wanted_port}: {error.strerror}")
            self.started.set()
            return
        async with server:
            self.port = server.sockets[0].getsockname()[1]
            self.started.set()
            await self.stop.wait()

    def _publish(self, frame):
        self.frame = frame
        for client in self.clients:
            client.news.set()

    def _tell(self, text):
        for client in self.clients:
            client.texts.append(text)
            del client.texts[:-32]
            client.news.set()

    def _allowed(self, request):
        """Accepts the host names of this server, and no page of another origin. A web site can then reach it neither through
        its own host name that resolves to this address (DNS rebinding) nor by a script."""
        host = request.headers.get("Host", "")
        name = host.rsplit(":", 1)[0]
        if self.host not in ANYWHERE and name not in (*LOOPBACK, self.host):
            return False
        origin = request.headers.get("Origin")
        return origin is None or origin in (f"http://{host}", f"https://{host}")

    def _request(self, connection, request):
        path = request.path.split("?")[0]
        if not self._allowed(request):
            return _answer(http.HTTPStatus.FORBIDDEN, b"Forbidden: another origin.\n")
        if path == "/socket":
            return None if len(self.clients) < MOST_CLIENTS else _answer(http.HTTPStatus.SERVICE_UNAVAILABLE, b"Too many pages are open.\n")
        if path not in self.files:
            return _answer(http.HTTPStatus.NOT_FOUND, b"Not found.\n")
        content, kind = self.files[path]
        return _answer(http.HTTPStatus.OK, content.read_bytes() if isinstance(content, Path) else content, kind)

    async def _client(self, socket):
        client = _Client(socket)
        client.texts += [json.dumps(message) for message in self.greeting()]
        self.clients.add(client)
        client.news.set()
        sender = asyncio.create_task(self._send(client))
        try:
            async for text in socket:
                await self._take(client, text)
        except ConnectionClosed:
            pass
        finally:
            self.clients.discard(client)
            sender.cancel()

    async def _send(self, client):
        sent = None
        try:
            while True:
                await client.news.wait()
                client.news.clear()
                while client.texts:
                    text = client.texts.pop(0)
                    await client.socket.send(text)
                if self.frame is not None and self.frame is not sent:
                    sent = self.frame
                    await client.socket.send(sent.packed())
        except ConnectionClosed:
            pass

    async def _take(self, client, text):
        try:
            order = json.loads(text)
            if not isinstance(order, dict):
                raise ValueError("the command is not a JSON object")
            self.on_order(order)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            await client.socket.send(json.dumps({"type": "error", "text": f"{error}"[:500]}))


class _Frame:
    """Packed once, for all clients."""

    def __init__(self, snapshot):
        self.snapshot, self.bytes = snapshot, None

    def packed(self):
        if self.bytes is None:
            self.bytes, self.snapshot = self.snapshot().packed(), None
        return self.bytes


class _Client:
    def __init__(self, socket):
        self.socket, self.news, self.texts = socket, asyncio.Event(), []


def _answer(status, body, kind="text/plain; charset=utf-8"):
    headers = Headers([("Content-Type", kind), ("Content-Length", str(len(body))), ("Cache-Control", "no-store"),
                       ("X-Content-Type-Options", "nosniff"), ("Connection", "close"),
                       ("Content-Security-Policy", "default-src 'none'; script-src 'unsafe-inline'; style-src "
                        "'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'")])
    return Response(status, status.phrase, headers, body)
