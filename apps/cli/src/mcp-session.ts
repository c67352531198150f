import type { ServerLogin } from '@thv/auth/client/server-login'
import { isHeaderValue, isToken } from '@thv/http/header-map'
import { createOutbound, type Outbound } from '@thv/http/outbound/outbound'
import { systemClock } from '@thv/kernel/clock'
import { withTimeLimit } from '@thv/kernel/deadline'
import { tryParseDuration } from '@thv/kernel/duration'
import { isThvError, ThvError } from '@thv/kernel/errors'
import { McpHttpError } from '@thv/mcp/client/client-errors'
import { createStreamableHttpClient } from '@thv/mcp/client/http/streamable-http-client'
import type { McpClient } from '@thv/mcp/client/mcp-client'
import { OFFERED, serverHandlers } from './answer-server.ts'
import type { ClusterFlags } from './cluster/open-cluster.ts'
import { mayCarryTokens, serverAccess } from './login/server-access.ts'
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

/** Connects to a server for the time of some work, logged in where it asks for that. Errors that the user can do something about say what. */
export async function withServer<T>(
  nameOrUrl: string,
  options: SessionOptions & { env: ProgramEnv },
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const { env } = options
  const url = await resolveServer(nameOrUrl, options, env)
  await using outbound = createOutbound()
  const mayLogIn = mayCarryTokens(new URL(url)) && !('authorization' in headersOf(options.header))
  const access = mayLogIn ? serverAccess(url, {}, { env, outbound }) : undefined
  return await connectTo(url, { ...options, outbound, access }, work)
}

export interface Connection extends SessionOptions {
  readonly env: ProgramEnv
  readonly outbound: Outbound
  /** Undefined: no token is added to the headers. */
  readonly access: ServerLogin | undefined
}

/** A call that the server refused for its token was not carried out, so the work begins again with another one. */
export async function connectTo<T>(url: string, connection: Connection, work: (session: Session) => Promise<T>): Promise<T> {
  const { access, env } = connection
  for (;;) {
    try {
      return await connectOnce(url, connection, work)
    } catch (error) {
      const isRefused = error instanceof McpHttpError && error.code === 'mcp_auth_required'
      const mayRetry = isRefused && access !== undefined && (await inLoginTime(env, (signal) => access.refused(error, signal)))
      if (!mayRetry) throw withHint(error, url)
    }
  }
}

const LOGIN_TIMEOUT_MS = 300_000

/** Somebody has to type a password. */
export function inLoginTime<T>({ signal }: ProgramEnv, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  return withTimeLimit({ clock: systemClock, timeoutMs: LOGIN_TIMEOUT_MS, what: 'the login', signals: [signal] }, work)
}

async function connectOnce<T>(url: string, connection: Connection, work: (session: Session) => Promise<T>): Promise<T> {
  const { env, outbound, access, verbose = false } = connection
  const { timeoutMs, connectTimeoutMs, limits } = waitsOf(connection.timeout, { isInteractive: env.ask !== undefined })
  const given = headersOf(connection.header)
  const headers = async (signal: AbortSignal) => {
    const token = await access?.token(signal)
    return token === undefined ? given : { ...given, authorization: `Bearer ${token}` }
  }
  await using client = createStreamableHttpClient({
    url,
    outbound,
    clientInfo: CLIENT_INFO,
    limits,
    headers: access === undefined ? given : headers,
    capabilities: OFFERED,
    handlers: serverHandlers(env),
    ...(verbose && {
      onWarning: (text: string) => env.err(`warning: ${plainText(text)}\n`),
      onNotification: ({ method, params }) => env.err(`${plainText(method)} ${plainText(JSON.stringify(params ?? {}))}\n`),
    }),
  })
  await client.connect({ timeoutMs: connectTimeoutMs, signal: env.signal })
  return await work({ client, limits: { timeoutMs, signal: env.signal } })
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
    headers[name.toLowerCase()] = value
  }
  return headers
}

const HINTS: Readonly<Record<string, string>> = {
  mcp_auth_required: 'log in with "thv login", or give credentials with --header "Authorization=Bearer …"',
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
