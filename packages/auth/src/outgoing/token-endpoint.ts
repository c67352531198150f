import { collect } from '@thv/http/outbound/collect'
import type { Outbound } from '@thv/http/outbound/outbound'
import { OutboundError } from '@thv/http/outbound/outbound-error'
import type { Clock } from '@thv/kernel/clock'
import { withTimeLimit } from '@thv/kernel/deadline'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import { createRetryGate } from '../incoming/retry-gate.ts'
import { readTokenAnswer, type TokenAnswer, type TokenGrant } from './token-answer.ts'
import { TokenRequestFailed } from './token-request-failed.ts'

export interface TokenClient {
  readonly id?: string | undefined
  /** Read for every request, so that a secret in a file can be replaced. */
  readonly secret?: (() => string | Promise<string>) | undefined
}

export interface TokenEndpointOptions {
  /** The address of the endpoint; asked for before every request. */
  readonly url: () => string | Promise<string>
  readonly client: TokenClient
  /** Without a policy of its own. */
  readonly outbound: Outbound
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly timeoutMs?: number
}

/**
 * A token endpoint (RFC 6749 §3.2) and the client that asks there. While no connection to it can be made, requests fail at once.
 * An answer never closes it, whatever its status: a caller who sends a token that upsets the endpoint must not close it to the others. `TokenCache`
 * keeps such failures by what was asked for.
 */
export interface TokenEndpoint {
  /** Throws TokenRequestFailed. `isExchange`: the grant is that of RFC 8693. */
  request(form: URLSearchParams, rules: { readonly isExchange: boolean }): Promise<TokenGrant>
}

const MAX_ANSWER_BYTES = 64 << 10
/** Each waits for one answer; the connections below are bounded too. */
const MAX_IN_FLIGHT = 1_024
/** The endpoint is configured, so it may have a private address. Metadata services are never called. */
export const ENDPOINT_POLICY = { allowLoopback: true } as const

export function createTokenEndpoint(options: TokenEndpointOptions): TokenEndpoint {
  const { client, outbound, clock, signal, timeoutMs = 10_000 } = options
  const gate = createRetryGate(clock)
  let inFlight = 0

  async function send(form: URLSearchParams, limit: AbortSignal, onSend: () => void): Promise<TokenAnswer> {
    const url = new URL(await options.url())
    const target = outbound.target({ url: url.href, policy: ENDPOINT_POLICY })
    const headers = ['Accept', 'application/json', 'Accept-Encoding', 'identity', 'Content-Type', 'application/x-www-form-urlencoded']
    const secret = await client.secret?.()
    if (client.id !== undefined && secret !== undefined) headers.push('Authorization', basic(client.id, secret))
    else if (client.id !== undefined) form.set('client_id', client.id)
    onSend()
    // A redirect is an answer like any other: the address that was configured is the one that gets the secret.
    return await collect(target, {
      method: 'POST',
      path: `${url.pathname}${url.search}`,
      headers,
      body: form.toString(),
      maxResponseBytes: MAX_ANSWER_BYTES,
      signal: limit,
    })
  }

  async function answerTo(form: URLSearchParams): Promise<TokenAnswer> {
    let isSent = false
    const onSend = () => {
      isSent = true
    }
    try {
      return await withTimeLimit({ clock, timeoutMs, what: 'the request for a token', signals: [signal] }, (limit) =>
        send(form, limit, onSend),
      )
    } catch (error) {
      if (error instanceof TokenRequestFailed) throw error
      if (error instanceof OutboundError) isSent = error.sent
      const kind = isThvError(error, 'backend_response_too_large') || isThvError(error, 'backend_blocked') ? 'refused' : 'unavailable'
      throw new TokenRequestFailed(kind, errorMessage(error), { scope: isSent ? 'request' : 'endpoint', cause: error })
    }
  }

  return {
    async request(form, rules) {
      if (gate.waitMs > 0) throw notNow(gate.waitMs)
      if (inFlight >= MAX_IN_FLIGHT) throw notNow(1_000)
      inFlight++
      try {
        const answer = await answerTo(form)
        gate.succeeded()
        return readTokenAnswer(answer, rules)
      } catch (error) {
        // Requests that were under way together fail together: that is one failure.
        if (isOutage(error) && gate.waitMs === 0) gate.failed()
        throw error
      } finally {
        inFlight--
      }
    },
  }
}

function isOutage(error: unknown): boolean {
  return error instanceof TokenRequestFailed && error.kind === 'unavailable' && error.scope === 'endpoint'
}

function notNow(retryAfterMs: number): TokenRequestFailed {
  return new TokenRequestFailed('unavailable', 'the endpoint was not asked: it failed a moment ago, or too many wait for it', {
    scope: 'endpoint',
    retryAfterMs,
  })
}

/** RFC 6749 §2.3.1: both parts are form-encoded before they are joined. */
function basic(id: string, secret: string): string {
  return `Basic ${Buffer.from(`${formEncoded(id)}:${formEncoded(secret)}`).toString('base64')}`
}

function formEncoded(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1)
}
