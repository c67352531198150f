import { isHeaderValue, isToken } from '@thv/http/header-map'
import { createOutbound } from '@thv/http/outbound/outbound'
import { tryParseDuration } from '@thv/kernel/duration'
import { isThvError, ThvError } from '@thv/kernel/errors'
import { createStreamableHttpClient } from '@thv/mcp/client/http/streamable-http-client'
import type { McpClient } from '@thv/mcp/client/mcp-client'
import { OFFERED, serverHandlers } from './answer-server.ts'
import type { ClusterFlags } from './cluster/open-cluster.ts'
import type { ProgramEnv } from './program.ts'
import { resolveServer } from './resolve-server.ts'
import { plainText } from './text/plain-text.ts'
import { VERSION } from './text/version.ts'

export const CLIENT_INFO = { name: 'thv', title: 'ToolHive TS', version: VERSION }

/** Options that all commands share which speak to a server. */
export interface SessionOptions extends ClusterFlags {
  readonly header: readonly string[]
  readonly timeout?: string
  readonly verbose?: boolean
}

export interface Session {
  readonly client: McpClient
  /** For everything that is asked of the client. */
  readonly limits: { readonly timeoutMs: number; readonly signal: AbortSignal | undefined }
}

const DEFAULT_TIMEOUT_MS = 60_000
/** Somebody may have to type. */
const INTERACTIVE_TIMEOUT_MS = 600_000

/** Connects to a server for the time of some work. Errors that the user can do something about say what. */
export async function withServer<T>(
  nameOrUrl: string,
  options: SessionOptions & { env: ProgramEnv },
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const { env, verbose = false } = options
  const url = await resolveServer(nameOrUrl, options, env)
  const { timeoutMs, connectTimeoutMs, limits } = waitsOf(options.timeout, { isInteractive: env.ask !== undefined })
  const headers = headersOf(options.header)
  await using outbound = createOutbound()
  await using client = createStreamableHttpClient({
    url,
    outbound,
    clientInfo: CLIENT_INFO,
    limits,
    headers,
    capabilities: OFFERED,
    handlers: serverHandlers(env),
    ...(verbose && {
      onWarning: (text: string) => env.err(`warning: ${plainText(text)}\n`),
      onNotification: ({ method, params }) => env.err(`${plainText(method)} ${plainText(JSON.stringify(params ?? {}))}\n`),
    }),
  })
  try {
    await client.connect({ timeoutMs: connectTimeoutMs, signal: env.signal })
    return await work({ client, limits: { timeoutMs, signal: env.signal } })
  } catch (error) {
    throw withHint(error, url)
  }
}

const CONNECT_TIMEOUT_MS = 30_000

/** With --timeout every step may take that long, the first answer too: a server may have to be installed for it. */
export function waitsOf(timeout: string | undefined, { isInteractive }: { isInteractive: boolean }) {
  const asked = timeoutOf(timeout)
  if (asked === undefined) {
    return { timeoutMs: isInteractive ? INTERACTIVE_TIMEOUT_MS : DEFAULT_TIMEOUT_MS, connectTimeoutMs: CONNECT_TIMEOUT_MS, limits: {} }
  }
  return { timeoutMs: asked, connectTimeoutMs: asked, limits: { connectTimeoutMs: asked, probeTimeoutMs: asked } }
}

function timeoutOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = tryParseDuration(text)
  if (ms === undefined || ms <= 0)
    throw new ThvError('usage', `--timeout must be a duration such as 30s or 2m, not ${JSON.stringify(text)}`)
  return ms
}

/** `Name=value` or `Name: value`. The value may be a secret, so it is in no message. */
function headersOf(words: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const word of words) {
    const [, name = '', value = ''] = /^([^=:\s]+)\s*[=:]\s*(.*)$/s.exec(word) ?? []
    if (!isToken(name) || !isHeaderValue(value)) throw new ThvError('usage', '--header must be Name=value')
    headers[name] = value
  }
  return headers
}

const HINTS: Readonly<Record<string, string>> = {
  mcp_auth_required: 'give credentials with --header "Authorization=Bearer …"',
  backend_refused: 'is the server running?',
  backend_dns: 'check the host name of the URL',
  timeout: 'give it more time with --timeout',
}

/** Keeps the code; adds what to try next. The cause says nothing that the message does not. */
function withHint(error: unknown, url: string): unknown {
  const hint = isThvError(error) ? HINTS[error.code] : undefined
  if (!isThvError(error) || hint === undefined) return error
  const { origin } = new URL(url)
  const message = error.message.includes(origin) ? error.message : `${origin}: ${error.message}`
  return new ThvError(error.code, `${message}: ${hint}`, { details: { ...error.details } })
}
