"""Drives one MCP server with the official Python SDK: lists its tools, calls some, prints what came as one JSON line."""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.sse import sse_client


async def main(url: str, mode: str, *calls: str) -> None:
    # HTTP+SSE is of the eras before 2026 only.
    connection = Client(sse_client(url), mode="legacy") if mode == "sse" else Client(url, mode=mode)
    async with connection as client:
        tools = await client.list_tools()
        texts = []
        # Names and arguments in turn.
        for tool, arguments in zip(calls[::2], calls[1::2]):
            result = await client.call_tool(tool, json.loads(arguments))
            texts += [block.text for block in result.content if block.type == "text"]
        print(json.dumps({"tools": [each.name for each in tools.tools], "texts": texts}))


asyncio.run(main(*sys.argv[1:]))
