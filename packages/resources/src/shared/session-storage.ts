import type { Static } from 'typebox'
import { int32, obj, oneOf, opt, str } from '../schema/nodes.ts'
import { compact, type ProblemList } from '../schema/normalize.ts'
import { secretKeyRef } from './references.ts'

/** Where sessions live: in the process, or in a Redis that several replicas share. */
export const sessionStorage = (description: string) =>
  obj(
    description,
    {
      provider: oneOf('Kind of storage. More than one replica needs redis.', ['memory', 'redis']),
      address: opt(str('Host and port of Redis.', { minLength: 1, maxLength: 2048 })),
      db: opt(int32('Number of the Redis database.', { minimum: 0, default: 0 })),
      keyPrefix: opt(str('Prefix of every key.', { maxLength: 253 })),
      passwordRef: opt(secretKeyRef('Secret that holds the Redis password.')),
    },
    {
      rules: [
        { rule: "self.provider != 'redis' || has(self.address)", message: 'address is required if provider is redis' },
        {
          rule: "self.provider == 'redis' || (!has(self.address) && !has(self.keyPrefix) && !has(self.passwordRef) && (!has(self.db) || self.db == 0))",
          message: 'address, db, keyPrefix and passwordRef may only be set if provider is redis',
        },
      ],
    },
  )

export type SessionStorage = Static<ReturnType<typeof sessionStorage>>

export type CanonicalSessionStorage =
  | { provider: 'memory' }
  | { provider: 'redis'; address: string; db: number; keyPrefix?: string; passwordRef?: { name: string; key: string } }

/** Redis without an address is a problem and counts as absent. */
export function normaliseSessionStorage(
  problems: ProblemList,
  field: string,
  value: SessionStorage | undefined,
): CanonicalSessionStorage | undefined {
  if (!value) return undefined
  if (value.provider === 'memory') return { provider: 'memory' }
  const { address, db, keyPrefix, passwordRef } = value
  if (address) return compact({ provider: 'redis' as const, address, db: db ?? 0, keyPrefix, passwordRef })
  problems.add(`${field}.address`, 'missing', `${field}.address must be set, because provider is redis`)
  return undefined
}
