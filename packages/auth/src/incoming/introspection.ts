import { OutboundError } from '@thv/http/outbound/outbound-error'
import type { Clock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import { CLIENT_SUBJECT_PREFIX, claimProblem, principalProblem, subjectProblem, type TokenClaims } from './claim-checks.ts'
import { identityOf } from './identity.ts'
import type { IncomingProvider, IntrospectionEndpoint } from './incoming-provider.ts'
import type { JsonAnswer, ProviderClient } from './provider-client.ts'
import type { RetryGate } from './retry-gate.ts'
import type { Verdict } from './verdict.ts'

export interface IntrospectionOptions {
  readonly provider: IncomingProvider
  readonly endpoint: IntrospectionEndpoint
  readonly client: ProviderClient
  readonly clock: Clock
  readonly gate: RetryGate
  readonly onProblem: (error: unknown) => void
}

const MAX_ANSWER_BYTES = 64 << 10
/** Opaque tokens cost nothing to invent: so many questions to one provider at a time, and no more. */
const MAX_IN_FLIGHT = 64
/** About the token, not about the provider: a client that sends such tokens must not close it to all others. */
const REFUSED_TOKEN: readonly number[] = [400, 413, 414, 422]

/** How long a token that the provider failed on is not asked about again, and how often such failures are reported. */
const TOKEN_WAIT_MS = 1_000
/** So many tokens in a row without an answer to any, and it is the provider that hangs, not they. */
const MAX_SILENT = 3
const QUIET_MS = 5_000

/** RFC 7662: asks the provider about a token that only it can read. */
export interface Introspection {
  verify(token: string): Promise<Verdict>
  readonly questions: number
}

export function createIntrospection(options: IntrospectionOptions): Introspection {
  const { provider, endpoint, client, clock, gate, onProblem } = options
  let inFlight = 0
  let questions = 0
  let quietUntil = -Infinity
  let silent = 0

  async function ask(token: string): Promise<Verdict> {
    questions++
    const answer = await introspect(token)
    if (typeof answer === 'number') return { kind: 'rejected', reason: `the provider answered ${answer}` }
    if (answer['active'] !== true) return { kind: 'rejected', reason: 'not active' }
    const subject = answer['sub'] ?? clientSubject(answer)
    const checked = answer['sub'] === undefined ? principalProblem(subject, provider) : subjectProblem(subject, provider)
    const problem = claimProblem(answer, provider, { nowMs: clock.now(), demand: 'if-present' }) ?? checked
    if (problem !== undefined) return { kind: 'rejected', reason: problem }
    return { kind: 'accepted', identity: identityOf(answer, provider, String(subject)) }
  }

  /** A number: the status with which the provider refused to look at the token. */
  async function introspect(token: string): Promise<JsonAnswer['json'] | number> {
    const form = new URLSearchParams({ token, token_type_hint: 'access_token' })
    const authorization = await clientAuthorization(endpoint, client)
    try {
      return (await client.json({ url: endpoint.url, maxBytes: MAX_ANSWER_BYTES, form, authorization })).json
    } catch (error) {
      const status = statusOf(error)
      if (status !== undefined && REFUSED_TOKEN.includes(status)) return status
      throw error
    }
  }

  /** A client that sends tokens which upset the provider must not close it to all others. */
  function failedOnToken(error: unknown): Verdict {
    const now = clock.monotonic()
    if (now >= quietUntil) {
      quietUntil = now + QUIET_MS
      onProblem(error)
    }
    return { kind: 'unavailable', waitMs: TOKEN_WAIT_MS, ofToken: true }
  }

  return {
    async verify(token) {
      if (gate.waitMs > 0) return { kind: 'unavailable', waitMs: gate.waitMs }
      if (inFlight >= MAX_IN_FLIGHT) return { kind: 'unavailable', waitMs: 1_000 }
      inFlight++
      try {
        const verdict = await ask(token)
        silent = 0
        gate.succeeded()
        return verdict
      } catch (error) {
        if (isOfToken(error) || (isTimeout(error) && ++silent < MAX_SILENT)) return failedOnToken(error)
        // Those that were on their way together fail together: that is one failure.
        if (gate.waitMs === 0) {
          gate.failed()
          onProblem(error)
        }
        return { kind: 'unavailable', waitMs: gate.waitMs }
      } finally {
        inFlight--
      }
    },
    get questions() {
      return questions
    },
  }
}

/** With which the provider answered, if it did. */
function statusOf(error: unknown): number | undefined {
  const status = isThvError(error) ? error.details['status'] : undefined
  return typeof status === 'number' ? status : undefined
}

function isTimeout(error: unknown): boolean {
  return isThvError(error) && error.details['timedOut'] === true
}

/** The provider was reached and failed, maybe on this token alone: its user may have claims without end. */
function isOfToken(error: unknown): boolean {
  const status = statusOf(error)
  if (status !== undefined) return status === 200 || status === 429 || status >= 500
  const cause = error instanceof Error ? error.cause : undefined
  return isThvError(cause, 'backend_response_too_large') || (cause instanceof OutboundError && cause.sent)
}

/**
 * RFC 7662 §2.2 leaves `sub` out for a client that acts for itself. With `username` the token is about a user whom the provider does not
 * identify: the name is for people to read, and the client would stand for all of its users.
 */
function clientSubject({ client_id: client, username }: TokenClaims): string | undefined {
  return typeof client === 'string' && client !== '' && username === undefined ? `${CLIENT_SUBJECT_PREFIX}${client}` : undefined
}

/** RFC 6749 §2.3.1: both halves are form-encoded before they are joined. */
async function clientAuthorization(endpoint: IntrospectionEndpoint, client: ProviderClient): Promise<string | undefined> {
  const { clientId, clientSecretFile } = endpoint
  if (clientId === undefined) return undefined
  const secret = clientSecretFile === undefined ? (endpoint.clientSecret ?? '') : await client.secretFile(clientSecretFile)
  return `Basic ${Buffer.from(`${formEncoded(clientId)}:${formEncoded(secret)}`).toString('base64')}`
}

function formEncoded(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1)
}
