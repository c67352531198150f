"""An MCP client of the official Python SDK that logs in by itself. Reads one question a line, writes one answer a line.

When the SDK wants a browser, the address goes out as {"visit": ...} and the parameters of the callback come in as the next line.
"""

import asyncio
import json
import sys

from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata


class MemoryStorage:
    def __init__(self) -> None:
        self.tokens = None
        self.client_info = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client_info

    async def set_client_info(self, client_info):
        self.client_info = client_info


async def read() -> dict | None:
    line = await asyncio.to_thread(sys.stdin.readline)
    return json.loads(line) if line else None


def write(answer: dict) -> None:
    print(json.dumps(answer), flush=True)


async def visit(address: str) -> None:
    write({"visit": address})


async def landed() -> AuthorizationCodeResult:
    answer = await read() or {}
    return AuthorizationCodeResult(code=answer["code"], state=answer.get("state"), iss=answer.get("iss"))


async def answer_to(client: Client, question: dict) -> dict:
    if "tools" in question:
        return {"tools": [each.name for each in (await client.list_tools()).tools]}
    result = await client.call_tool(question["call"], question["arguments"])
    return {"content": [{"type": block.type, "text": getattr(block, "text", None)} for block in result.content]}


async def main(url: str, mode: str, redirect_uri: str, identity_json: str, *grant_types: str) -> None:
    identity = json.loads(identity_json)
    metadata = OAuthClientMetadata(
        client_name="test",
        redirect_uris=[redirect_uri],
        grant_types=list(grant_types),
        token_endpoint_auth_method="none",
    )
    storage = MemoryStorage()
    if "clientId" in identity:
        storage.client_info = OAuthClientInformationFull(client_id=identity["clientId"], **metadata.model_dump(exclude_none=True))
    auth = OAuthClientProvider(
        url,
        metadata,
        storage,
        redirect_handler=visit,
        callback_handler=landed,
        client_metadata_url=identity.get("metadataUrl"),
    )
    await read()
    async with create_mcp_http_client(auth=auth) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            write({"connected": True})
            while (question := await read()) is not None:
                try:
                    write(await answer_to(client, question))
                except Exception as error:  # the test says what it expected
                    write({"error": repr(error)})


asyncio.run(main(*sys.argv[1:]))
