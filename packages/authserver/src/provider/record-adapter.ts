import type { JsonObject } from '@thv/kernel/json'
import type { AuthRecordKind, AuthStore, Consumption } from '@thv/store/auth/auth-store'
import { errors } from 'oidc-provider'
import { loginOf } from './login-record.ts'
import type { RefreshIds } from './refresh-ids.ts'
import { type TokenRequest, tokenRequest } from './token-request.ts'

type Payload = Record<string, unknown>

export interface RecordAdapterOptions {
  readonly store: AuthStore
  readonly client: (id: string) => Promise<Payload | undefined>
  readonly refreshIds: RefreshIds
  readonly refreshMs: number
  /** How long a revoked family is remembered: longer than its last token can live. */
  readonly familyMs: number
  readonly onReuse: (what: 'code' | 'refresh', family: string) => void
}

const KINDS: Readonly<Record<string, AuthRecordKind>> = {
  AuthorizationCode: 'code',
  RefreshToken: 'refresh',
  Grant: 'grant',
  Interaction: 'interaction',
  ReplayDetection: 'replay',
}

/** A client that lost an answer, or refreshes twice at once, gets another successor within this time. */
export const REFRESH_GRACE_MS = 10_000
/**
 * A consumed refresh token needs no record after its grace: its id says that it was good once. It has one until the store has taken back what it
 * could not finish.
 */
const CONSUMED_KEPT_MS = 180_000
/** A consumed code is kept until it would have expired. */
const CODE_KEPT_MS = 600_000
const FAR_FUTURE_SECONDS = 4_102_444_800

/** Ends the consumption that a request has begun and that no new record was made for. */
export interface Consumptions {
  settle(request: TokenRequest): Promise<void>
}

/**
 * Records of the library, in our store. The library looks up, consumes and then stores a successor; here consuming waits for the successor,
 * and both are one atomic step: of simultaneous redemptions one wins, and a failure in between uses nothing up. Sessions are not kept: each
 * login stands for itself.
 */
export function createRecordAdapter(options: RecordAdapterOptions): { adapter: (model: string) => object } & Consumptions {
  const { store, familyMs } = options

  async function judge(outcome: Consumption, { kind, family }: NonNullable<TokenRequest['presented']>): Promise<void> {
    if (outcome === 'first' || (outcome === 'again' && kind === 'refresh')) return
    if (outcome !== 'missing') await reused(kind === 'code' ? 'code' : 'refresh', family)
    throw new errors.InvalidGrant(undefined, `${kind} ${outcome}`)
  }

  async function reused(what: 'code' | 'refresh', family: string): Promise<void> {
    await store.revokeFamily(family, familyMs)
    options.onReuse(what, family)
  }

  /** A refresh token without a record was consumed, or its family has ended. */
  async function findConsumed(id: string): Promise<void> {
    const family = tokenRequest() === undefined ? undefined : options.refreshIds.familyOf(id)
    if (family !== undefined && (await store.get('grant', family)) !== undefined) await reused('refresh', family)
  }

  async function upsertRefresh(id: string, payload: Payload, ttlMs: number): Promise<void> {
    const family = String(payload['grantId'])
    const request = tokenRequest()
    const presented = request?.presented
    const record = { value: storedForm(payload), ttlMs, family }
    if (request === undefined || presented === undefined) return await store.put('refresh', id, record)
    request.presented = undefined
    const isRefresh = presented.kind === 'refresh'
    const outcome = await store.replace({
      from: {
        kind: presented.kind,
        id: presented.id,
        graceMs: isRefresh ? REFRESH_GRACE_MS : 0,
        keptMs: isRefresh ? CONSUMED_KEPT_MS : CODE_KEPT_MS,
      },
      to: { kind: 'refresh', id, ...record },
      prolonged: ['grant', 'login'],
    })
    await judge(outcome, presented)
  }

  function adapter(model: string): object {
    const kind = KINDS[model]
    if (model === 'Client') return { find: options.client }
    if (kind === undefined) return { ...NOTHING, revokeByGrantId: (family: string) => store.revokeFamily(family, familyMs) }
    return {
      async upsert(id: string, payload: Payload, ttlSeconds: number) {
        const ttlMs = Math.max(kind === 'grant' ? options.refreshMs : ttlSeconds * 1_000, 1)
        if (kind === 'refresh') return await upsertRefresh(id, payload, ttlMs)
        const family = kind === 'grant' ? id : typeof payload['grantId'] === 'string' ? payload['grantId'] : undefined
        const value = storedForm(payload)
        const isInteraction = kind === 'interaction'
        await store.put(kind, id, { value, ttlMs, ...(family !== undefined && !isInteraction && { family }) })
      },
      async find(id: string): Promise<Payload | undefined> {
        const record = await store.get(kind, id)
        if (record === undefined && kind === 'refresh') await findConsumed(id)
        if (record === undefined) return undefined
        const payload = { ...record.value, jti: id, kind: model }
        // The store ends a grant: it lives as long as its last refresh token.
        if (kind === 'grant') return { ...payload, exp: FAR_FUTURE_SECONDS }
        if (record.consumedAt === undefined || kind === 'refresh') {
          const request = tokenRequest()
          const family = record.value['grantId']
          if (request !== undefined && typeof family === 'string') request.found = { kind, id, family }
          return payload
        }
        if (kind === 'code') options.onReuse('code', String(record.value['grantId'])) // the library revokes its family
        return { ...payload, consumed: record.consumedAt }
      },
      async consume(id: string) {
        const request = tokenRequest()
        const found = request?.found
        if (request === undefined || found?.id !== id) throw new errors.InvalidGrant(undefined, `${kind} was not looked up`)
        const login = await loginOf(found.family, store)
        // The client is led to a login, which it would not reach as long as it can refresh.
        if (kind === 'refresh' && (login?.ended?.length ?? 0) > 0)
          throw new errors.InvalidGrant(undefined, 'the login at an upstream provider has ended')
        request.presented = found
      },
      destroy: (id: string) => store.remove(kind, id),
      revokeByGrantId: (family: string) => store.revokeFamily(family, familyMs),
    }
  }

  return {
    adapter,
    async settle(request) {
      const { presented } = request
      if (presented === undefined) return
      request.presented = undefined
      await judge(await store.consume(presented.kind, presented.id, { graceMs: 0 }), presented)
    },
  }
}

/** Without the id, which is the key, and the name of the model, which is the kind. The store writes it as JSON at once. */
function storedForm({ jti: _id, kind: _model, ...payload }: Payload): JsonObject {
  return payload as JsonObject
}

const NOTHING = {
  upsert: async () => {},
  find: async () => undefined,
  findByUid: async () => undefined,
  consume: async () => {},
  destroy: async () => {},
}
