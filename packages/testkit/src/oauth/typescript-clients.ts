import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { MODERN } from '../mcp/wire/protocol.ts'
import { MemoryCredentials } from './memory-credentials.ts'
import type { CallResult, OAuthClient, OAuthClientOptions } from './oauth-client.ts'

interface Connection {
  readonly connect: () => Promise<void>
  readonly finish: (landed: URL) => Promise<void>
  readonly tools: () => Promise<string[]>
  readonly call: (name: string, args: Record<string, unknown>) => Promise<CallResult>
  readonly close: () => Promise<void>
}

const INFO = { name: 'oauth', version: '1.0.0' }

/** Version 1 of the SDK speaks the eras before 2026. */
export function connectV1(options: OAuthClientOptions): Promise<OAuthClient> {
  return connect(options, (credentials) => {
    const client = new ClientV1(INFO)
    const transport = new TransportV1(new URL(options.url), { authProvider: credentials as never })
    return {
      // The SDK's own type of the transport is not exact about optional members.
      connect: () => client.connect(transport as never),
      finish: (landed) => transport.finishAuth(landed.searchParams.get('code') ?? ''),
      tools: async () => (await client.listTools()).tools.map(({ name }) => name),
      call: async (name, args) => (await client.callTool({ name, arguments: args })) as unknown as CallResult,
      close: () => client.close(),
    }
  })
}

export function connectV2(options: OAuthClientOptions): Promise<OAuthClient> {
  return connect(options, (credentials) => {
    const client = new ClientV2(INFO, { versionNegotiation: { mode: options.era === 'modern' ? { pin: MODERN } : 'legacy' } })
    const transport = new TransportV2(new URL(options.url), { authProvider: credentials as never })
    return {
      connect: () => client.connect(transport),
      finish: (landed) => transport.finishAuth(landed.searchParams),
      tools: async () => (await client.listTools()).tools.map(({ name }) => name),
      call: async (name, args) => (await client.callTool({ name, arguments: args })) as unknown as CallResult,
      close: () => client.close(),
    }
  })
}

/** Logins before a connection: the first one, and one that a further provider may need. */
const MAX_LOGINS = 2

/** As applications do it: after the user has come back, a connection that did not come about is made again, and a call is repeated. */
async function connect(options: OAuthClientOptions, open: (credentials: MemoryCredentials) => Connection): Promise<OAuthClient> {
  const credentials = new MemoryCredentials(options)
  const opened = async () => {
    for (let logins = 0; ; logins++) {
      const connection = open(credentials)
      try {
        await connection.connect()
        return connection
      } catch (error) {
        if (logins === MAX_LOGINS) throw error
        await finish(connection, error)
        await connection.close()
      }
    }
  }
  const connection = await opened()

  async function finish(of: Connection, error: unknown): Promise<void> {
    const landed = credentials.takeLanding()
    if (landed === undefined) throw error
    await of.finish(landed)
  }

  return {
    visits: credentials.visits,
    tools: connection.tools,
    async call(name, args = {}) {
      try {
        return await connection.call(name, args)
      } catch (error) {
        await finish(connection, error)
        return await connection.call(name, args)
      }
    },
    [Symbol.asyncDispose]: connection.close,
  }
}
