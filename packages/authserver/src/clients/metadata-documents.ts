import { collect } from '@thv/http/outbound/collect'
import type { Outbound } from '@thv/http/outbound/outbound'
import type { Clock } from '@thv/kernel/clock'
import { withTimeLimit } from '@thv/kernel/deadline'
import { parseDuration } from '@thv/kernel/duration'
import { isObject } from '@thv/kernel/json'
import { createSingleFlight } from '@thv/kernel/single-flight'
import type { AuthServerConfig } from '@thv/runconfig/auth-server-config'
import { judgeRegistration } from './registration.ts'
import type { RegisteredClient } from './sealed-clients.ts'

/** An answer as far as it is looked at. */
export interface DocumentAnswer {
  readonly status: number
  readonly contentType: string
  readonly cacheControl: string
  readonly body: string
}

export interface MetadataDocumentsOptions {
  readonly config: AuthServerConfig
  readonly clock: Clock
  readonly fetch: (url: URL) => Promise<DocumentAnswer>
  readonly onRejected: (host: string, reason: string) => void
}

/** Clients whose id is the URL of their metadata (draft-ietf-oauth-client-id-metadata-document). */
export interface MetadataDocuments {
  /** Undefined: the id is no such URL, or its document does not say what it must. */
  find(clientId: string): Promise<RegisteredClient | undefined>
}

interface Held {
  readonly client: RegisteredClient | undefined
  readonly until: number
}

const MAX_BYTES = 16 << 10
const MAX_DEPTH = 8
const TIMEOUT_MS = 5_000
const KEPT_MS = { least: 5_000, most: 24 * 3_600_000, rejected: 10_000 }
/** Different documents that may be fetched at once. */
const MAX_FLIGHTS = 32

export function createMetadataDocuments(options: MetadataDocumentsOptions): MetadataDocuments {
  const { config, clock } = options
  const { enabled, cache_max_size: maxSize, cache_fallback_ttl: fallback } = config.cimd
  const held = new Map<string, Held>()
  const flights = createSingleFlight<string, Held>()

  async function load(clientId: string, url: URL): Promise<Held> {
    const now = clock.monotonic()
    try {
      const answer = await options.fetch(url)
      const client = clientOf(clientId, answer, config)
      return { client, until: now + keptMs(answer.cacheControl, parseDuration(fallback)) }
    } catch (error) {
      options.onRejected(url.host, error instanceof Error ? error.message : String(error))
      return { client: undefined, until: now + KEPT_MS.rejected }
    }
  }

  return {
    async find(clientId) {
      const url = enabled ? documentUrl(clientId) : undefined
      if (url === undefined) return undefined
      const known = held.get(clientId)
      if (known !== undefined && known.until > clock.monotonic()) return known.client
      if (flights.size >= MAX_FLIGHTS) return undefined
      const loaded = await flights.run(clientId, () => load(clientId, url))
      held.delete(clientId)
      held.set(clientId, loaded)
      if (held.size > maxSize) held.delete(held.keys().next().value ?? '')
      return loaded.client
    },
  }
}

/** Fetches from public addresses alone, without redirects. */
export function createDocumentFetch(outbound: Outbound, clock: Clock, signal: AbortSignal): (url: URL) => Promise<DocumentAnswer> {
  return async (url) => {
    const target = outbound.target({ url: url.href, policy: { denyPrivate: true } })
    const { status, headers, body } = await withTimeLimit(
      { clock, timeoutMs: TIMEOUT_MS, what: 'the document', signals: [signal] },
      (limit) =>
        collect(target, {
          method: 'GET',
          path: `${url.pathname}${url.search}`,
          headers: ['Accept', 'application/json', 'Accept-Encoding', 'identity'],
          body: undefined,
          maxResponseBytes: MAX_BYTES,
          signal: limit,
        }),
    )
    const [contentType, cacheControl] = [String(headers['content-type'] ?? ''), String(headers['cache-control'] ?? '')]
    return { status, contentType, cacheControl, body: body.toString('utf8') }
  }
}

/** Undefined: must not be fetched. One spelling for each URL, with a path. */
export function documentUrl(clientId: string): URL | undefined {
  if (!clientId.startsWith('https://') || clientId.length > 1_024 || !/^[\x21-\x7e]+$/.test(clientId) || /[\\#@]/.test(clientId))
    return undefined
  const url = URL.parse(clientId)
  if (url === null || url.href !== clientId || url.pathname === '/' || /%2e/i.test(clientId)) return undefined
  return url
}

function clientOf(clientId: string, answer: DocumentAnswer, config: AuthServerConfig): RegisteredClient {
  if (answer.status !== 200) throw new Error(`the document was answered with ${answer.status}`)
  if (!/^application\/([\w.+-]+\+)?json\b/i.test(answer.contentType)) throw new Error('the document is not JSON')
  const document: unknown = JSON.parse(answer.body)
  if (!isObject(document) || depthOf(document) > MAX_DEPTH) throw new Error('the document is not a flat JSON object')
  if (document['client_id'] !== clientId) throw new Error('the document names another client_id')
  if ('client_secret' in document) throw new Error('the document holds a secret')
  const judged = judgeRegistration(document, { ...config, allow_confidential_client_registration: false })
  if (!judged.ok) throw new Error(judged.description)
  return judged.client
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

function keptMs(cacheControl: string, fallbackMs: number): number {
  if (/\bno-(store|cache)\b/i.test(cacheControl)) return KEPT_MS.least
  const seconds = /\bmax-age="?(\d{1,9})/i.exec(cacheControl)?.[1]
  const ms = seconds === undefined ? fallbackMs : Number(seconds) * 1_000
  return Math.min(KEPT_MS.most, Math.max(KEPT_MS.least, ms))
}
