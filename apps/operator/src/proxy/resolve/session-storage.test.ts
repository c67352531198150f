import { sessionStorage as storages } from '@thv/resources/testing/workload-arbitraries'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { resolveSessionStorage, type SessionStorageArgs } from './session-storage.ts'
import { blockersOf, contributionOf, runnerReads, snapshot } from './testing/snapshot.ts'

const resolve = (more: Partial<SessionStorageArgs> = {}) =>
  resolveSessionStorage({
    ...{ name: 'demo', namespace: 'team', lookup: snapshot() },
    ...{ sessionStorage: undefined, defaultRedis: undefined, replicas: undefined },
    ...more,
  })

const REDIS = { provider: 'redis', address: 'redis:6379', db: 2, keyPrefix: 'p', passwordRef: { name: 'redis', key: 'pw' } } as const
const DEFAULT = { address: 'shared-redis:6379', passwordRef: { name: 'default', key: 'redis-password' } }

describe('resolveSessionStorage', () => {
  it('keeps sessions in memory, with a warning for several pods', () => {
    const reasonOf = (more: Partial<SessionStorageArgs>) => {
      const { conditions, ...rest } = contributionOf(resolve(more))
      expect(rest).toEqual({})
      return `${conditions?.[0]?.type} ${conditions?.[0]?.status} ${conditions?.[0]?.reason}`
    }
    expect(reasonOf({})).toBe('SessionStorageWarning False SessionStorageWarningNotApplicable')
    expect(reasonOf({ replicas: 1, sessionStorage: { provider: 'memory' } })).toBe(
      'SessionStorageWarning False SessionStorageWarningNotApplicable',
    )
    expect(reasonOf({ replicas: 2 })).toBe('SessionStorageWarning True SessionStorageMissingForReplicas')
    expect(reasonOf({ replicas: 2, sessionStorage: { provider: 'memory' }, defaultRedis: DEFAULT })).toBe(
      'SessionStorageWarning True SessionStorageMissingForReplicas',
    )
  })

  it('keeps them in the Redis of the spec, whose password is in a Secret', () => {
    const lookup = snapshot({ secrets: { redis: ['pw'] } })
    expect(contributionOf(resolve({ sessionStorage: REDIS, defaultRedis: DEFAULT, replicas: 3, lookup }))).toEqual({
      runConfig: { scaling_config: { session_redis: { address: 'redis:6379', db: 2, key_prefix: 'p' } } },
      env: [{ name: 'THV_SESSION_REDIS_PASSWORD', valueFrom: { secretKeyRef: { name: 'redis', key: 'pw' } } }],
      secrets: ['redis'],
      conditions: [
        {
          type: 'SessionStorageWarning',
          status: 'False',
          reason: 'SessionStorageConfigured',
          message: 'sessions are kept in Redis at redis:6379',
        },
      ],
    })
  })

  it('is blocked by a password that is missing, and by an address that is none', () => {
    expect(blockersOf(resolve({ sessionStorage: REDIS }))).toMatchObject([{ condition: 'ConfigurationValid', reason: 'SecretNotFound' }])
    for (const address of ['redis://redis:6379', 'me:hunter2@redis:6379', 'redis 6379']) {
      const blockers = blockersOf(resolve({ sessionStorage: { provider: 'redis', address, db: 0 } }))
      expect(blockers).toMatchObject([{ reason: 'InvalidSpec' }])
      expect(JSON.stringify(blockers)).not.toContain('hunter2')
    }
  })

  it('falls back to the Redis of the operator, password included', () => {
    const lookup = snapshot({ secrets: { default: ['redis-password'] } })
    expect(contributionOf(resolve({ defaultRedis: DEFAULT, lookup }))).toMatchObject({
      runConfig: { scaling_config: { session_redis: { address: 'shared-redis:6379', db: 0 } } },
      env: [{ name: 'THV_SESSION_REDIS_PASSWORD' }],
      secrets: ['default'],
    })
    expect(contributionOf(resolve({ defaultRedis: { address: 'r:1' } }))).toMatchObject({ env: [], secrets: [] })
  })

  it('keeps servers that share a Redis apart, unless they name the same prefix', () => {
    const prefixOf = (more: Partial<SessionStorageArgs>) =>
      contributionOf(resolve(more)).runConfig?.scaling_config?.session_redis?.key_prefix
    const shared = { defaultRedis: { address: 'r:1' } }
    const own = { sessionStorage: { provider: 'redis', address: 'r:1', db: 0 } } as const
    expect([prefixOf(shared), prefixOf(own)]).toEqual(['thv:proxy:session:{team:demo}:', 'thv:proxy:session:{team:demo}:'])
    expect(prefixOf({ ...shared, name: 'other' })).toBe('thv:proxy:session:{team:other}:')
    expect(prefixOf({ ...shared, namespace: 'other' })).toBe('thv:proxy:session:{other:demo}:')
    expect(prefixOf({ sessionStorage: { ...own.sessionStorage, keyPrefix: 'p' } })).toBe('p')
  })

  it('stays in memory without the password of the Redis of the operator, which the spec does not require', () => {
    expect(contributionOf(resolve({ defaultRedis: DEFAULT }))).toEqual({
      conditions: [
        {
          type: 'SessionStorageWarning',
          status: 'True',
          reason: 'DefaultRedisSecretNotFound',
          message: expect.stringMatching(/Secret default, which does not exist: create it .*sessions stay in memory/),
        },
      ],
    })
  })

  it('whatever is asked for: it is blocked with a reason, or the runner reads it', () => {
    fc.assert(
      fc.property(storages, fc.nat(3), (sessionStorage, replicas) => {
        const resolved = resolve({ sessionStorage, replicas })
        if (resolved.ok) runnerReads(resolved.contribution)
        else expect(resolved.blockers.length).toBeGreaterThan(0)
      }),
    )
  })
})
