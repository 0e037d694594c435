"""Tunes examples/train.sh through the tools of tuner mcp, as an agent would.

Usage: agent.py TUNER

It needs the package mcp, 1.x or 2.x. It connects over stdin and stdout and over HTTP, tunes from
nothing in 12 calls, and prints each call with its answer. It fails if the best loss is above
0.105, where 0.1 is the least, or if the answers are long.
"""

import asyncio
import contextlib
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import mcp

TUNER = os.path.abspath(sys.argv[1])
TRAIN = pathlib.Path(__file__).parents[3] / "examples" / "train.sh"
ROUNDS, COUNT = 5, 6


@contextlib.asynccontextmanager
async def session(at):
    """Yields a session and the version of the protocol. at is a URL or the arguments of tuner."""
    local = None if isinstance(at, str) else mcp.StdioServerParameters(command=TUNER, args=at)
    if hasattr(mcp, "Client"):
        async with mcp.Client(local or at) as client:
            yield client, client.protocol_version
        return
    if local:
        streams = mcp.stdio_client(local)
    else:
        from mcp.client.streamable_http import streamablehttp_client

        streams = streamablehttp_client(at)
    async with streams as (read, write, *_), mcp.ClientSession(read, write) as client:
        yield client, (await client.initialize()).protocolVersion


class Agent:
    def __init__(self, client):
        self.client, self.calls, self.sent, self.bytes = client, 0, 0, 0

    async def call(self, tool, **arguments):
        answer = await self.client.call_tool(tool, arguments)
        text = answer.content[0].text
        assert not getattr(answer, "isError", getattr(answer, "is_error", False)), text
        self.calls += 1
        self.sent += len(json.dumps(arguments))
        self.bytes += len(text.encode())
        print(f"→ {tool} {json.dumps(arguments)}\n← {text}")
        return json.loads(text)

    async def tune(self):
        space = [
            {"name": "lr", "type": "float", "low": 1e-5, "high": 1, "scale": "log"},
            {"name": "batch", "type": "int", "low": 8, "high": 512, "scale": "log"},
        ]
        await self.call("create_study", study="train", parameters=space, minimize=["loss"])
        for _ in range(ROUNDS):
            trials = (await self.call("ask", study="train", count=COUNT))["trials"]
            runs = [(t, subprocess.Popen(command(t["config"]), stdout=subprocess.PIPE, text=True, env={**os.environ, "PAUSE": "0"})) for t in trials]
            results = []
            for trial, run in runs:
                loss = run.communicate()[0].split("loss=")[-1]
                results.append({"trial": trial["trial"], "epoch": trial["epoch"], "value": float(loss)})
            await self.call("tell", study="train", results=results)
        return await self.call("best", study="train")


def command(config):
    return [str(TRAIN)] + [word for name, value in config.items() for word in ("--" + name, str(value))]


async def main():
    version = importlib.metadata.version("mcp")
    with tempfile.TemporaryDirectory() as folder:
        db, ready = os.path.join(folder, "tuner.db"), os.path.join(folder, "ready.json")
        serve = subprocess.Popen([TUNER, "serve", "--db", os.path.join(folder, "served.db"), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ready-file", ready, "-q"])
        try:
            while not os.path.exists(ready):
                assert serve.poll() is None, "tuner serve has ended"
                time.sleep(0.05)
            url = "http://" + json.loads(pathlib.Path(ready).read_text())["http"] + "/mcp"
            for name, at in (("stdin and stdout", ["mcp", "--db", db]), ("HTTP", url)):
                async with session(at) as (client, protocol):
                    tools = (await client.list_tools()).tools
                    listed = len(json.dumps([t.model_dump(mode="json", by_alias=True, exclude_none=True) for t in tools]))
                    agent = Agent(client)
                    best = await agent.tune()
                    loss = best["best"][0]["values"]["loss"]
                    print(f"mcp {version}, protocol {protocol}, {name}: loss {loss} in {agent.calls} calls; {len(tools)} tools of {listed} bytes, calls of {agent.sent}, answers of {agent.bytes}, about {agent.bytes // 3} tokens\n")
                    assert agent.calls <= 12 and loss <= 0.105 and agent.bytes < 8000, "too many calls, too bad, or too long"
        finally:
            serve.terminate()
            serve.wait()


asyncio.run(main())
