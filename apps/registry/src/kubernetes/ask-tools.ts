import { apiServerAddresses } from '@thv/http/outbound/api-server-addresses'
import { createOutbound } from '@thv/http/outbound/outbound'
import { createStreamableHttpClient } from '@thv/mcp/client/http/streamable-http-client'

export interface AskToolsOptions {
  readonly timeoutMs: number
  /** For a cluster that runs on this machine. */
  readonly allowLoopback: boolean
}

/** Servers belong to anybody whose namespace is exported, and several are asked at a time. */
const ANSWER_LIMITS = { maxMessageBytes: 2 << 20, maxPages: 20, maxItems: 10_000 }
const CLIENT_INFO = { name: 'thv-registry-api', version: '0.1.0' }

/** The names of the tools of a server, as a client without a token sees them. Never calls metadata services or the API server. */
export async function askTools(
  url: string,
  signal: AbortSignal,
  { timeoutMs, allowLoopback }: AskToolsOptions,
): Promise<readonly string[]> {
  const address = new URL(url)
  // The fragment names the server for people.
  address.hash = ''
  const policy = { allowLoopback, blockedAddresses: apiServerAddresses({ env: process.env }) }
  await using outbound = createOutbound({ policy, maxConnections: 2 })
  await using client = createStreamableHttpClient({
    url: address.href,
    outbound,
    clientInfo: CLIENT_INFO,
    capabilities: {},
    limits: { connectTimeoutMs: timeoutMs, probeTimeoutMs: timeoutMs, ...ANSWER_LIMITS },
  })
  const limited = { signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]), timeoutMs }
  const tools = await client.list('tools/list', limited)
  return tools.flatMap(({ name }) => (typeof name === 'string' ? [name] : []))
}
