import type { JsonObject } from '@thv/kernel/json'
import type { AuthRecordKind, AuthStore } from '@thv/store/auth/auth-store'
import { errors } from 'oidc-provider'

type Payload = Record<string, unknown>

export interface RecordAdapterOptions {
  readonly store: AuthStore
  readonly client: (id: string) => Promise<Payload | undefined>
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
const FAR_FUTURE_SECONDS = 4_102_444_800

/**
 * Records of the library, in our store. Redeeming is one atomic step: the library looks up and then consumes, so the second of two
 * simultaneous redemptions fails here. Sessions are not kept: each login stands for itself.
 */
export function createRecordAdapter(options: RecordAdapterOptions): (model: string) => object {
  const { store, familyMs } = options
  return (model) => {
    const kind = KINDS[model]
    if (model === 'Client') return { find: options.client }
    if (kind === undefined) return { ...NOTHING, revokeByGrantId: (family: string) => store.revokeFamily(family, familyMs) }
    return {
      async upsert(id: string, payload: Payload, ttlSeconds: number) {
        const family = kind === 'grant' ? id : typeof payload['grantId'] === 'string' ? payload['grantId'] : undefined
        const ttlMs = kind === 'grant' ? options.refreshMs : ttlSeconds * 1_000
        const value = JSON.parse(JSON.stringify(payload)) as JsonObject
        const isInteraction = kind === 'interaction'
        await store.put(kind, id, { value, ttlMs: Math.max(ttlMs, 1), ...(family !== undefined && !isInteraction && { family }) })
        if (kind === 'refresh' && family !== undefined) await prolong(family)
      },
      async find(id: string): Promise<Payload | undefined> {
        const record = await store.get(kind, id)
        if (record === undefined) return undefined
        // The store ends a grant: it lives as long as its last refresh token.
        if (kind === 'grant') return { ...record.value, exp: FAR_FUTURE_SECONDS }
        return record.consumedAt === undefined || kind === 'refresh'
          ? { ...record.value }
          : { ...record.value, consumed: record.consumedAt }
      },
      async consume(id: string) {
        const record = await store.get(kind, id)
        const family = String(record?.value['grantId'])
        const outcome = await store.consume(kind, id, { graceMs: kind === 'refresh' ? REFRESH_GRACE_MS : 0 })
        if (outcome === 'first' || (outcome === 'again' && kind === 'refresh')) return
        if (outcome !== 'missing') {
          await store.revokeFamily(family, familyMs)
          options.onReuse(kind === 'code' ? 'code' : 'refresh', family)
        }
        throw new errors.InvalidGrant(undefined, `${kind} ${outcome}`)
      },
      destroy: (id: string) => store.remove(kind, id),
      revokeByGrantId: (family: string) => store.revokeFamily(family, familyMs),
    }
  }

  async function prolong(family: string): Promise<void> {
    const [grant, login] = await Promise.all([store.get('grant', family), store.get('login', family)])
    const again = (kind: AuthRecordKind, value: JsonObject) => store.put(kind, family, { value, ttlMs: options.refreshMs, family })
    await Promise.all([grant && again('grant', grant.value), login && again('login', login.value)])
  }
}

const NOTHING = {
  upsert: async () => {},
  find: async () => undefined,
  findByUid: async () => undefined,
  consume: async () => {},
  destroy: async () => {},
}
