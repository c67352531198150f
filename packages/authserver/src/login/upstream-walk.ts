import { randomBytes } from 'node:crypto'
import type { JsonObject } from '@thv/kernel/json'
import type { AuthServerConfig } from '@thv/runconfig/auth-server-config'
import type { AuthStore } from '@thv/store/auth/auth-store'
import type { UpstreamAttempt, UpstreamIdentity, UpstreamProvider } from '../upstream/upstream-provider.ts'
import { UpstreamRefused } from '../upstream/upstream-refused.ts'
import type { UpstreamTokens } from '../upstream-tokens.ts'
import { accountOf } from './account-id.ts'
import { checkAnswerOrigin } from './answer-origin.ts'
import { type Http, redirect } from './http.ts'

export interface UpstreamWalkOptions {
  readonly config: AuthServerConfig
  readonly store: AuthStore
  readonly upstreams: readonly UpstreamProvider[]
  readonly tokens: UpstreamTokens
}

/** A provider's answer, as the browser brings it. */
export interface BroughtAnswer {
  readonly query: URLSearchParams
  /** That the browser was sent to, at this server. */
  readonly path: string
}

/** To a provider and back. */
export interface UpstreamWalk {
  /** The provider that says who users are. */
  readonly first: UpstreamProvider
  find(provider: string): UpstreamProvider | undefined
  /** Sends the user there. `waiting` is kept until the answer comes. */
  start(http: Http, provider: string, waiting: object): Promise<void>
  /** The code of the answer; undefined when the provider sent none. Rejects with `UpstreamRefused` for the answer of another provider. */
  code(upstream: UpstreamProvider, answer: BroughtAnswer): Promise<string | undefined>
  /** Redeems the code and keeps the tokens. Without an account, the user at the provider is one. Rejects with `UpstreamRefused` too. */
  redeem(upstream: UpstreamProvider, attempt: UpstreamAttempt, given: { code: string; account?: string | undefined }): Promise<Walked>
}

export interface Walked {
  readonly identity: UpstreamIdentity
  readonly account: string
}

const PENDING_MS = 600_000

export function createUpstreamWalk({ config, store, upstreams, tokens }: UpstreamWalkOptions): UpstreamWalk {
  const byName = new Map(upstreams.map((upstream) => [upstream.provider, upstream]))
  const [first] = upstreams
  if (first === undefined) throw new RangeError('there is no provider')
  return {
    first,
    find: (provider) => byName.get(provider),
    async start({ response }, provider, waiting) {
      const upstream = byName.get(provider)
      if (upstream === undefined) throw new RangeError(`no provider ${provider}`)
      const attempt = { state: randomId(), nonce: randomId(), verifier: randomId() }
      const url = await upstream.authorizationUrl(attempt)
      await store.put('pending', attempt.state, { value: { ...waiting, ...attempt } as JsonObject, ttlMs: PENDING_MS })
      redirect(response, url)
    },
    async code(upstream, { query, path }) {
      await checkAnswerOrigin(upstream, { path, iss: query.get('iss') }, upstreams)
      return query.has('error') ? undefined : (query.get('code') ?? undefined)
    },
    async redeem(upstream, attempt, { code, account: known }) {
      const redeemed = await upstream.redeem(code, attempt)
      const identity = await upstream.identify(redeemed, attempt)
      const own = accountOf(config.issuer, upstream.provider, identity.subject)
      const account = known ?? own
      // The tokens of the provider that says who users are must be those of the same user.
      if (upstream === first && account !== own) throw new UpstreamRefused('another_user')
      const { answer: _, ...set } = redeemed
      await tokens.save({ account, provider: upstream.provider, subject: identity.subject, tokens: set, generation: upstream.generation })
      return { identity, account }
    },
  }
}

function randomId(): string {
  return randomBytes(32).toString('base64url')
}
