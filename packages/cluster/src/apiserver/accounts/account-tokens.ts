import { createHash, randomUUID } from 'node:crypto'
import type { Clock } from '@thv/kernel/clock'
import type { JsonObject } from '@thv/kube-schema/kind-schema'
import type { ObjectStore } from '../../store/object-store.ts'
import { objectKey, type StoredObject } from '../../store/stored-object.ts'
import type { User } from '../http/tokens.ts'
import { at, isObject, textAt } from '../objects/served-kind.ts'
import type { TokenKey } from './token-key.ts'

/** Issuer, and audience of tokens that ask for none: the same on every cluster, so that programs need no setting for ours. */
export const ISSUER = 'https://kubernetes.default.svc.cluster.local'

/** An object that a token dies with. */
export interface BoundObject {
  readonly kind: 'Pod' | 'Secret' | 'Node'
  readonly object: StoredObject
}

export interface TokenWish {
  readonly account: StoredObject
  readonly audiences: readonly string[]
  readonly seconds: number
  readonly bound?: BoundObject | undefined
}

export interface MintedToken {
  readonly token: string
  /** Epoch seconds. */
  readonly expires: number
}

const OBJECT_TYPES = { pod: 'pods', secret: 'secrets', node: 'nodes' } as const
/** An object that is being deleted may use its tokens for so long: it has work to do at its end. */
const DELETED_GRACE_MS = 60_000
/** For clocks that differ: at both ends of a token's life, as on the real server. */
const LEEWAY_SECONDS = 60
const MAX_REMEMBERED = 1_000

/** The tokens of ServiceAccounts: signed, so none of them is stored, and good for as long as what they name is there. */
export class AccountTokens {
  readonly #key: TokenKey
  readonly #store: ObjectStore
  readonly #clock: Clock
  /** Claims by digest of a token whose signature was good: clients send the same one with every request. */
  readonly #signed = new Map<string, JsonObject>()

  constructor(key: TokenKey, store: ObjectStore, clock: Clock) {
    this.#key = key
    this.#store = store
    this.#clock = clock
  }

  get jwks(): JsonObject {
    return { keys: [this.#key.jwk] }
  }

  mint({ account, audiences, seconds, bound }: TokenWish): MintedToken {
    const now = this.#now()
    const claims = {
      aud: [...audiences],
      exp: now + seconds,
      iat: now,
      iss: ISSUER,
      jti: randomUUID(),
      'kubernetes.io': {
        namespace: account.namespace ?? '',
        ...(bound ? this.#boundClaims(bound) : {}),
        serviceaccount: nameAndUid(account),
      },
      nbf: now,
      sub: userName(account.namespace ?? '', account.name),
    }
    return { token: this.#key.sign(claims), expires: now + seconds }
  }

  /** Undefined for whatever is not, or no longer, a good token of ours. */
  userOf(token: string): User | undefined {
    const claims = this.#claimsOf(token)
    if (claims === undefined || claims['iss'] !== ISSUER) return undefined
    const { exp, nbf, aud } = claims
    const now = this.#now()
    if (typeof exp !== 'number' || exp + LEEWAY_SECONDS < now || typeof nbf !== 'number' || nbf > now + LEEWAY_SECONDS) return undefined
    if (!Array.isArray(aud) || !aud.includes(ISSUER)) return undefined
    const own = claims['kubernetes.io']
    const namespace = textAt(own, 'namespace')
    const name = textAt(own, 'serviceaccount', 'name')
    const isThere = this.#isAlive('serviceaccounts', namespace, at(own, 'serviceaccount'))
    if (!isThere || claims['sub'] !== userName(namespace, name) || !this.#areBoundAlive(own, namespace)) return undefined
    return {
      name: userName(namespace, name),
      uid: textAt(own, 'serviceaccount', 'uid'),
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    }
  }

  #now(): number {
    return Math.floor(this.#clock.now() / 1_000)
  }

  #claimsOf(token: string): JsonObject | undefined {
    const digest = createHash('sha256').update(token).digest('base64')
    const known = this.#signed.get(digest)
    if (known !== undefined) return known
    const claims = this.#key.verify(token)
    if (claims === undefined) return undefined
    const [oldest] = this.#signed.keys()
    if (this.#signed.size >= MAX_REMEMBERED && oldest !== undefined) this.#signed.delete(oldest)
    this.#signed.set(digest, claims)
    return claims
  }

  /** The pod's node is for information; a token lives and dies with the pod only. */
  #areBoundAlive(own: JsonObject[string] | undefined, namespace: string): boolean {
    const bound = (['pod', 'secret', 'node'] as const).find((name) => at(own, name) !== undefined)
    return bound === undefined || this.#isAlive(OBJECT_TYPES[bound], bound === 'node' ? undefined : namespace, at(own, bound))
  }

  #isAlive(type: string, namespace: string | undefined, reference: JsonObject[string] | undefined): boolean {
    if (!isObject(reference)) return false
    const found = this.#store.get(type, objectKey(namespace, textAt(reference, 'name')))
    if (found === undefined || textAt(found.body, 'metadata', 'uid') !== textAt(reference, 'uid')) return false
    const deleted = Date.parse(textAt(found.body, 'metadata', 'deletionTimestamp'))
    return !(deleted + DELETED_GRACE_MS < this.#clock.now())
  }

  #boundClaims({ kind, object }: BoundObject): JsonObject {
    const name = kind.toLowerCase()
    const nodeName = kind === 'Pod' ? textAt(object.body, 'spec', 'nodeName') : ''
    if (nodeName === '') return { [name]: nameAndUid(object) }
    const node = this.#store.get('nodes', objectKey(undefined, nodeName))
    return { node: node === undefined ? { name: nodeName } : nameAndUid(node), [name]: nameAndUid(object) }
  }
}

function nameAndUid({ name, body }: StoredObject): JsonObject {
  return { name, uid: textAt(body, 'metadata', 'uid') }
}

function userName(namespace: string, name: string): string {
  return `system:serviceaccount:${namespace}:${name}`
}
