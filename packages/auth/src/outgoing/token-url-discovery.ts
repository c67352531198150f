import { collect } from '@thv/http/outbound/collect'
import type { Outbound } from '@thv/http/outbound/outbound'
import type { Clock } from '@thv/kernel/clock'
import { withTimeLimit } from '@thv/kernel/deadline'
import { errorMessage } from '@thv/kernel/errors'
import { isObject } from '@thv/kernel/json'
import { createSingleFlight } from '@thv/kernel/single-flight'
import { metadataUrls } from '../incoming/discovery.ts'
import { isThisMachine } from '../incoming/incoming-provider.ts'
import { ENDPOINT_POLICY } from './token-endpoint.ts'
import { TokenRequestFailed } from './token-request-failed.ts'

export interface TokenUrlDiscoveryOptions {
  readonly issuer: string
  readonly outbound: Outbound
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly timeoutMs?: number
}

const MAX_DOCUMENT_BYTES = 256 << 10
const KEPT_MS = 3_600_000

/** Finds the token endpoint of an issuer: OpenID discovery first, then RFC 8414. Asked again every hour. */
export function createTokenUrlDiscovery(options: TokenUrlDiscoveryOptions): () => string | Promise<string> {
  const { issuer, clock } = options
  const flights = createSingleFlight<'', string>()
  let known: { readonly url: string; readonly until: number } | undefined

  async function discover(): Promise<string> {
    const failures: unknown[] = []
    for (const url of metadataUrls(issuer)) {
      try {
        return await tokenUrlIn(url, options)
      } catch (error) {
        failures.push(error)
      }
    }
    throw new TokenRequestFailed('unavailable', `discovery of ${issuer}: ${errorMessage(failures[0])}`, {
      scope: 'endpoint',
      cause: failures[0],
    })
  }

  return () => {
    if (known !== undefined && known.until > clock.monotonic()) return known.url
    return flights.run('', async () => {
      const url = await discover()
      known = { url, until: clock.monotonic() + KEPT_MS }
      return url
    })
  }
}

async function tokenUrlIn(address: string, options: TokenUrlDiscoveryOptions): Promise<string> {
  const { issuer, outbound, clock, signal, timeoutMs = 10_000 } = options
  const url = new URL(address)
  const target = outbound.target({ url: url.href, policy: ENDPOINT_POLICY })
  const headers = ['Accept', 'application/json', 'Accept-Encoding', 'identity']
  const { status, body } = await withTimeLimit({ clock, timeoutMs, what: 'discovery', signals: [signal] }, (limit) =>
    collect(target, { method: 'GET', path: url.pathname, headers, body: undefined, maxResponseBytes: MAX_DOCUMENT_BYTES, signal: limit }),
  )
  if (status !== 200) throw new Error(`the issuer answered ${status}`)
  const document: unknown = JSON.parse(body.toString('utf8'))
  if (!isObject(document) || document['issuer'] !== issuer) throw new Error('the document is of another issuer')
  const endpoint = document['token_endpoint']
  const found = typeof endpoint === 'string' ? URL.parse(endpoint) : null
  if (found === null) throw new Error('the document names no token_endpoint')
  // The client's secret goes there: an issuer that is reached by TLS cannot send it elsewhere in the clear.
  if (found.protocol !== 'https:' && !(found.protocol === url.protocol && found.protocol === 'http:') && !isThisMachine(found))
    throw new Error('the token_endpoint is not https')
  return found.href
}
