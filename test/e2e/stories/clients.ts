import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { inspect, promisify } from 'node:util'
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ensurePythonEnv } from '@thv/testkit/python/python-env'

/* The official clients, as somebody outside the cluster uses them. */

export interface McpClient extends AsyncDisposable {
  tools(): Promise<Tool[]>
  /** Progress is handed on as it comes. */
  call(tool: string, args?: Record<string, unknown>, onProgress?: (progress: number) => void): Promise<ToolResult>
}

export interface Tool {
  readonly name: string
  readonly description?: string | undefined
}

export interface ToolResult {
  readonly content: readonly { readonly type: string; readonly text?: string }[]
  readonly structuredContent?: Record<string, unknown>
  readonly isError?: boolean
}

/** `v1` is of the eras before 2026, `v2` asks for the newest first, `sse` is `v1` over the transport of 2024. */
export type Sdk = 'v1' | 'v2' | 'sse'

const info = { name: 'story', version: '1.0.0' }
const CALL_LIMIT_MS = 60_000
const NOWHERE_LIMIT_MS = 60_000

/** A pod may be ready a moment before the cluster leads anybody to it, be it a client or a proxy: what leads nowhere is tried again for a while. */
export async function connect(sdk: Sdk, url: string, headers: Record<string, string> = {}): Promise<McpClient> {
  const deadline = performance.now() + NOWHERE_LIMIT_MS
  for (;;) {
    try {
      return await connectOnce(sdk, url, headers)
    } catch (error) {
      if (!leadsNowhere(error) || performance.now() > deadline) throw error
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
}

function leadsNowhere(error: unknown): boolean {
  // Each SDK hides it elsewhere. A host is unreachable while the rules of a Service are being replaced.
  return /ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT|Backend unavailable: it cannot be reached/.test(
    inspect(error, { depth: 6 }),
  )
}

async function connectOnce(sdk: Sdk, url: string, headers: Record<string, string>): Promise<McpClient> {
  const options = { requestInit: { headers } }
  if (sdk === 'v2') {
    const client = new ClientV2(info, { versionNegotiation: { mode: 'auto' } })
    const transport = new TransportV2(new URL(url), options)
    await client.connect(transport)
    const progressing = progressOf(transport as unknown as Wire)
    return {
      tools: async () => (await client.listTools()).tools,
      call: (name, args = {}, onProgress) =>
        progressing(onProgress, async (options) => (await client.callTool({ name, arguments: args }, options)) as unknown as ToolResult),
      [Symbol.asyncDispose]: () => client.close(),
    }
  }
  const client = new ClientV1(info)
  const transport = sdk === 'sse' ? new SSEClientTransport(new URL(url), options) : new TransportV1(new URL(url), options)
  // The SDK's own type of the transport is not exact about optional members.
  await client.connect(transport as never)
  const progressing = progressOf(transport as unknown as Wire)
  return {
    tools: async () => (await client.listTools()).tools,
    call: (name, args = {}, onProgress) =>
      progressing(
        onProgress,
        async (options) => (await client.callTool({ name, arguments: args }, undefined, options)) as unknown as ToolResult,
      ),
    [Symbol.asyncDispose]: () => client.close(),
  }
}

interface Wire {
  onmessage?: (message: { readonly method?: string; readonly params?: { readonly progress?: number } }, extra: never) => void
}

/**
 * Progress as it comes over the wire, of one call at a time. An SDK tells it a moment later, and no longer once it has the answer: of what
 * comes in one piece with the answer it says nothing.
 */
function progressOf(wire: Wire) {
  let tell: ((progress: number) => void) | undefined
  const { onmessage } = wire
  wire.onmessage = (message, extra) => {
    if (message.method === 'notifications/progress') tell?.(message.params?.progress ?? Number.NaN)
    onmessage?.(message, extra)
  }
  return async <T>(onProgress: typeof tell, call: (options: { timeout: number; onprogress?: () => void }) => Promise<T>): Promise<T> => {
    tell = onProgress
    try {
      // Without a listener it would ask for none.
      return await call({ timeout: CALL_LIMIT_MS, ...(onProgress && { onprogress: () => undefined }) })
    } finally {
      tell = undefined
    }
  }
}

/** Connects, calls and goes again; for questions that may have to be asked more than once. */
export async function ask(url: string, tool: string, args: Record<string, unknown> = {}): Promise<ToolResult> {
  await using client = await connect('v2', url)
  return await client.call(tool, args)
}

/** The Python SDK: names of the tools, and the text that one of them answered. */
export async function askWithPython(
  url: string,
  { tool, args, mode }: { tool: string; args: Record<string, unknown>; mode: 'auto' | 'legacy' | 'sse' },
): Promise<{ tools: string[]; texts: string[] }> {
  const { python } = await ensurePythonEnv(['mcp==2.3.0', 'uv==0.13.7'])
  const script = fileURLToPath(new URL('../python-client.py', import.meta.url))
  const { stdout } = await promisify(execFile)(python, [script, url, mode, tool, JSON.stringify(args)], { timeout: 60_000 })
  return JSON.parse(stdout) as { tools: string[]; texts: string[] }
}

/** The fixture's description of itself. */
export async function whoAmI(client: Pick<McpClient, 'call'>, tool = 'who_am_i'): Promise<{ name: string; instance: string }> {
  return (await client.call(tool)).structuredContent as { name: string; instance: string }
}

export function namesOf(tools: readonly Tool[]): string[] {
  return tools.map(({ name }) => name)
}
