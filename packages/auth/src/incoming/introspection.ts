import type { Clock } from '@thv/kernel/clock'
import { claimProblem } from './claim-checks.ts'
import { identityOf } from './identity.ts'
import type { IncomingProvider, IntrospectionEndpoint } from './incoming-provider.ts'
import type { ProviderClient } from './provider-client.ts'
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

/** RFC 7662: asks the provider about a token that only it can read. */
export interface Introspection {
  verify(token: string): Promise<Verdict>
  readonly questions: number
}

export function createIntrospection(options: IntrospectionOptions): Introspection {
  const { provider, endpoint, client, clock, gate, onProblem } = options
  let inFlight = 0
  let questions = 0

  async function ask(token: string): Promise<Verdict> {
    questions++
    const form = new URLSearchParams({ token, token_type_hint: 'access_token' })
    const authorization = await clientAuthorization(endpoint, client)
    const { json } = await client.json({ url: endpoint.url, maxBytes: MAX_ANSWER_BYTES, form, authorization })
    if (json['active'] !== true) return { kind: 'rejected', reason: 'not active' }
    const problem = claimProblem(json, provider, { nowMs: clock.now(), demand: 'if-present' })
    if (problem !== undefined) return { kind: 'rejected', reason: problem }
    const identity = identityOf(json, provider, json['sub'] ?? json['client_id'] ?? json['username'])
    return identity ? { kind: 'accepted', identity } : { kind: 'rejected', reason: 'without a subject' }
  }

  return {
    async verify(token) {
      if (gate.waitMs > 0) return { kind: 'unavailable', waitMs: gate.waitMs }
      if (inFlight >= MAX_IN_FLIGHT) return { kind: 'unavailable', waitMs: 1_000 }
      inFlight++
      try {
        const verdict = await ask(token)
        gate.succeeded()
        return verdict
      } catch (error) {
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
