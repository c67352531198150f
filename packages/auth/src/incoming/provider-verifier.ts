import type { Outbound } from '@thv/http/outbound/outbound'
import type { Clock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import type { IncomingProvider, LocalKeys } from './incoming-provider.ts'
import { createIntrospection } from './introspection.ts'
import { type UnverifiedJwt, verifyJwt } from './jwt.ts'
import { createKeySet, type KeySet } from './key-set.ts'
import { createProviderClient } from './provider-client.ts'
import { createRetryGate } from './retry-gate.ts'
import type { Verdict } from './verdict.ts'

/** One provider with its keys and its introspection. Verdicts never reject: a provider that fails is `unavailable`. */
export interface ProviderVerifier {
  readonly provider: IncomingProvider
  jwt(jwt: UnverifiedJwt): Promise<Verdict>
  opaque(token: string): Promise<Verdict>
  warm(): Promise<void>
  readonly keyFetches: number
  readonly introspections: number
}

export interface ProviderVerifierOptions {
  readonly provider: IncomingProvider
  readonly outbound: Outbound
  readonly clock: Clock
  readonly callMs: number
  readonly signal: AbortSignal
  readonly onProblem: (provider: string, error: unknown) => void
}

export function createProviderVerifier(options: ProviderVerifierOptions): ProviderVerifier {
  const { provider, clock, callMs, outbound, signal } = options
  const onProblem = (error: unknown) => {
    if (!signal.aborted) options.onProblem(provider.name, error)
  }
  const client = createProviderClient({ provider, outbound, clock, timeoutMs: callMs, signal })
  const keyGate = createRetryGate(clock)
  const keys = provider.localKeys
    ? localKeySet(provider.issuer, provider.localKeys)
    : createKeySet({ provider, client, clock, gate: keyGate, onProblem })
  const endpoint = provider.introspection
  const introspection = endpoint && createIntrospection({ provider, endpoint, client, clock, gate: createRetryGate(clock), onProblem })

  return {
    provider,
    async jwt(jwt) {
      try {
        const issuer = await keys.issuer()
        return await verifyJwt(jwt, { provider: issuer === provider.issuer ? provider : { ...provider, issuer }, keys, clock })
      } catch (error) {
        if (!isThvError(error, 'auth_provider_unavailable')) throw error
        return { kind: 'unavailable', waitMs: keyGate.waitMs }
      }
    },
    async opaque(token) {
      return introspection ? await introspection.verify(token) : { kind: 'rejected', reason: 'not a JWT' }
    },
    warm: () => keys.warm(),
    get keyFetches() {
      return keys.fetches
    },
    get introspections() {
      return introspection?.questions ?? 0
    },
  }
}

function localKeySet(issuer: string, find: LocalKeys): KeySet {
  return { find: async (header) => find(header), issuer: async () => issuer, warm: async () => {}, fetches: 0 }
}
