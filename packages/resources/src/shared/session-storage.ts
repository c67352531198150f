import type { Static } from 'typebox'
import { bool, int32, list, obj, oneOf, opt, str } from '../schema/nodes.ts'
import { compact, type ProblemList } from '../schema/normalize.ts'
import { type CanonicalCABundleRef, caBundleRef, normaliseCaBundleRef } from './ca-bundle-ref.ts'
import { secretKeyRef } from './references.ts'

/** Where sessions live: in the process, or in a Redis that several replicas share. */
export const sessionStorage = (description: string) =>
  obj(
    description,
    {
      provider: oneOf('Kind of storage. More than one replica needs redis.', ['memory', 'redis']),
      address: opt(str('Host and port of Redis. Set this or sentinel.', { minLength: 1, maxLength: 2048 })),
      sentinel: opt(
        obj('Finds the primary of a Redis with failover.', {
          masterName: str('Name under which the Sentinels watch the primary.', { minLength: 1, maxLength: 253 }),
          addresses: list('Hosts and ports of the Sentinels.', str('Host and port.', { minLength: 1, maxLength: 2048 }), {
            minItems: 1,
            maxItems: 16,
          }),
          passwordRef: opt(secretKeyRef('Secret that holds the password of the Sentinels.')),
        }),
      ),
      db: opt(int32('Number of the Redis database.', { minimum: 0, default: 0 })),
      keyPrefix: opt(str('Prefix of every key.', { maxLength: 253 })),
      username: opt(str('ACL user of Redis.', { minLength: 1, maxLength: 253 })),
      passwordRef: opt(secretKeyRef('Secret that holds the Redis password.')),
      tls: opt(
        obj(
          'TLS to Redis and its Sentinels.',
          {
            enabled: bool('Whether TLS is used.'),
            caBundleRef: opt(caBundleRef()),
          },
          { rules: [{ rule: 'self.enabled || !has(self.caBundleRef)', message: 'caBundleRef may only be set if enabled is true' }] },
        ),
      ),
      encryptionKeyRef: opt(
        secretKeyRef(
          'Secret with the keys that encrypt sessions in Redis, one per line: the first encrypts, all of them decrypt. Without it the key is derived from the Redis password.',
        ),
      ),
    },
    {
      rules: [
        {
          rule: "self.provider != 'redis' || has(self.address) != has(self.sentinel)",
          message: 'exactly one of address and sentinel is required if provider is redis',
        },
        {
          rule: "self.provider == 'redis' || (!has(self.address) && !has(self.sentinel) && !has(self.keyPrefix) && !has(self.username) && !has(self.passwordRef) && !has(self.tls) && !has(self.encryptionKeyRef) && (!has(self.db) || self.db == 0))",
          message: 'the other fields may only be set if provider is redis',
        },
      ],
    },
  )

export type SessionStorage = Static<ReturnType<typeof sessionStorage>>

interface SecretKey {
  name: string
  key: string
}

export interface CanonicalRedisStorage {
  provider: 'redis'
  /** Exactly one of this and `sentinel`. */
  address?: string
  sentinel?: { masterName: string; addresses: string[]; passwordRef?: SecretKey }
  db: number
  keyPrefix?: string
  username?: string
  passwordRef?: SecretKey
  tls?: { enabled: boolean; caBundleRef?: CanonicalCABundleRef }
  encryptionKeyRef?: SecretKey
}

export type CanonicalSessionStorage = { provider: 'memory' } | CanonicalRedisStorage

/** Redis without exactly one of address and sentinel is a problem and counts as absent. */
export function normaliseSessionStorage(
  problems: ProblemList,
  field: string,
  value: SessionStorage | undefined,
): CanonicalSessionStorage | undefined {
  if (!value) return undefined
  if (value.provider === 'memory') return { provider: 'memory' }
  const { address, sentinel, db, keyPrefix, username, passwordRef, tls, encryptionKeyRef } = value
  if (Boolean(address) === (sentinel !== undefined)) {
    problems.add(
      `${field}.address`,
      'missing',
      `exactly one of ${field}.address and ${field}.sentinel must be set, because provider is redis`,
    )
    return undefined
  }
  return compact({
    provider: 'redis' as const,
    address: address || undefined,
    sentinel: sentinel && compact({ masterName: sentinel.masterName, addresses: sentinel.addresses, passwordRef: sentinel.passwordRef }),
    db: db ?? 0,
    keyPrefix,
    username,
    passwordRef,
    tls: tls && compact({ enabled: tls.enabled, caBundleRef: normaliseCaBundleRef(problems, `${field}.tls.caBundleRef`, tls.caBundleRef) }),
    encryptionKeyRef,
  })
}
