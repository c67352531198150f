import { spawn } from 'node:child_process'
import { createOutbound } from '@thv/http/outbound/outbound'
import type { StdioStreams } from '@thv/testkit/mcp/client/pipe-channel'
import { createStdioClient } from '@thv/testkit/mcp/client/stdio-client'
import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { fixtureCommand } from '@thv/testkit/mcp/fixture-process'
import type { FixtureOptions } from '@thv/testkit/mcp/state/options'
import type { JsonObject } from '../../json-rpc.ts'
import type { Era } from '../../versions.ts'
import { createHttpSseClient } from '../http/http-sse-client.ts'
import { createStreamableHttpClient, type StreamableHttpOptions } from '../http/streamable-http-client.ts'
import type { ClientOptions, McpClient, RequestOptions } from '../mcp-client.ts'

export const CLIENT_INFO = { name: 'test-client', version: '1.2.3' }

/** A client able to answer whatever a server may ask. */
export const ANSWERS: Pick<ClientOptions, 'handlers'> = {
  handlers: {
    elicitation: () => ({ action: 'accept', content: { name: 'Ada', color: 'red', value: 'yes', ok: true } }),
    sampling: () => ({ role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'none' }),
    roots: () => ({ roots: [{ uri: 'file:///home/ada' }] }),
  },
}

export interface Peers extends AsyncDisposable {
  readonly client: McpClient
  /** Over HTTP only. */
  readonly fixture: Fixture
  readonly warnings: string[]
  /** Methods of what came without being asked for. */
  readonly notifications: string[]
  call(name: string, args?: JsonObject, options?: RequestOptions): Promise<JsonObject>
  /** The first text of a tool's result. */
  text(name: string, args?: JsonObject, options?: RequestOptions): Promise<string>
}

export type PeerOptions = FixtureOptions & { readonly client?: Partial<StreamableHttpOptions> & { prefer?: Era } }

/** The fixture server and a client of ours that is connected to it. */
export async function connectPeers({ client: given = {}, ...options }: PeerOptions = {}): Promise<Peers> {
  const warnings: string[] = []
  const notifications: string[] = []
  const outbound = createOutbound()
  const common = {
    clientInfo: CLIENT_INFO,
    onWarning: (text: string) => void warnings.push(text),
    onNotification: ({ method }: { method: string }) => void notifications.push(method),
    ...given,
  }
  const processes: { kill(): void }[] = []
  const { transport = 'http' } = options
  const fixture = transport === 'stdio' ? NO_FIXTURE : await startFixture({ ...options, transport })
  const start = () => {
    const child = startStdio(options)
    processes.push(child)
    return child.streams
  }
  const client =
    transport === 'stdio'
      ? createStdioClient({ ...common, streams: start })
      : transport === 'sse'
        ? createHttpSseClient({ ...common, url: fixture.url, outbound })
        : createStreamableHttpClient({ ...common, url: fixture.url, outbound })
  const dispose = async () => {
    await client.close()
    await outbound.close()
    for (const child of processes) child.kill()
    if (transport !== 'stdio') await fixture.stop()
  }
  try {
    await client.connect()
  } catch (error) {
    await dispose()
    throw error
  }
  const call = (name: string, args: JsonObject = {}, more?: RequestOptions) => client.request('tools/call', { name, arguments: args }, more)
  const text = async (name: string, args?: JsonObject, more?: RequestOptions) => textOf(await call(name, args, more))
  return { client, fixture, warnings, notifications, call, text, [Symbol.asyncDispose]: dispose }
}

export function textOf({ content }: JsonObject): string {
  return Array.isArray(content) ? String(content[0]?.text) : ''
}

/** A fixture process and its pipes. */
export function startStdio(options: FixtureOptions): { streams: StdioStreams; kill(): void; readonly exited: Promise<unknown> } {
  const { command, args } = fixtureCommand({ ...options, transport: 'stdio' })
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = new Promise((resolve) => child.once('exit', resolve))
  return { streams: { input: child.stdin, output: child.stdout }, kill: () => void child.kill('SIGKILL'), exited }
}

const NO_FIXTURE = new Proxy({} as Fixture, {
  get: () => {
    throw new Error('a fixture on a pipe is a process: it cannot be looked into')
  },
})
