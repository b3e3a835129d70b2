#!/usr/bin/env bash
# Guess: after the body of a request, `receive()` of an ASGI server waits until the caller goes (`http.disconnect`).
# Seen: pyvoy 1.3.0 answers each further `receive()` at once with an empty `http.request`; uvicorn 0.35.0 waits.
# Why it matters: a task beside a stream that waits for the caller's going turns into a loop that never sleeps, one for
#   each stream. Find the going by the `send` that fails.
. "$(dirname "$0")/lib.sh"
pip_packages pyvoy==1.3.0 uvicorn==0.35.0

cat >app.py <<'E'
import asyncio


async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    try:
        seen = [(await asyncio.wait_for(receive(), 1))["type"] for _ in range(100)]
        answer = f"100 answers: {', '.join(set(seen))}"
    except TimeoutError:
        answer = "waits"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": answer.encode()})
E
cat >ask.py <<'E'
import socket
import subprocess
import time
import urllib.error
import urllib.request

COMMANDS = {"pyvoy": ["pyvoy", "--no-lifespan"], "uvicorn": ["uvicorn", "--lifespan", "off", "--log-level", "error"]}
for name, command in COMMANDS.items():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    with open(f"{name}.log", "w") as log:
        server = subprocess.Popen([*command, "--port", str(port), "app:app"], stdout=log, stderr=log)
    for _ in range(300):
        try:
            print(name, urllib.request.urlopen(f"http://127.0.0.1:{port}/", b"body").read().decode())
            break
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    server.terminate()
    server.wait()
E
expect python ask.py <<'E'
pyvoy 100 answers: http.request
uvicorn waits
E
