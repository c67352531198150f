import { TestClock } from '@thv/kernel/clock'
import type { KubeClient } from '@thv/kube/client/client'
import { describe, expect, it } from 'vitest'
import type { NodePod } from '../pod/pod-spec.ts'
import { AccountTokens } from './account-tokens.ts'

const SIGNAL = new AbortController().signal
const POD = { metadata: { name: 'p', namespace: 'team', uid: 'u' }, spec: { serviceAccountName: 'acc', containers: [] } } as NodePod
const SOURCE = { path: 'token', audience: 'vault', expirationSeconds: 1_000 }

function setUp() {
  const clock = new TestClock()
  const calls: unknown[] = []
  const state = { fails: false }
  const raw = async (method: string, path: string, options: { body: unknown }) => {
    calls.push([method, path, options.body])
    if (state.fails) throw new Error('away')
    const expirationTimestamp = new Date(clock.now() + 1_000_000).toISOString()
    return { json: () => ({ status: { token: `t${calls.length}`, expirationTimestamp } }) }
  }
  const tokens = new AccountTokens({ raw } as unknown as KubeClient, clock)
  return { clock, calls, state, tokens, get: () => tokens.get(POD, SOURCE, SIGNAL) }
}

describe('AccountTokens', () => {
  it('asks for a token that is bound to the pod, and again at 80 % of its life', async () => {
    const { clock, calls, tokens, get } = setUp()
    expect(tokens.renewAt).toBeUndefined()
    expect([await get(), await get()]).toEqual(['t1', 't1'])
    expect(calls).toEqual([
      [
        'POST',
        '/api/v1/namespaces/team/serviceaccounts/acc/token',
        {
          apiVersion: 'authentication.k8s.io/v1',
          kind: 'TokenRequest',
          spec: {
            audiences: ['vault'],
            expirationSeconds: 1_000,
            boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' },
          },
        },
      ],
    ])
    expect(tokens.renewAt).toBe(800_000)
    await clock.advance(799_999)
    expect(await get()).toBe('t1')
    await clock.advance(1)
    expect(await get()).toBe('t2')
  })

  it('keeps the old one while the server is away, and asks again soon', async () => {
    const { clock, state, tokens, get } = setUp()
    await get()
    state.fails = true
    await clock.advance(800_000)
    expect(await get()).toBe('t1')
    expect((tokens.renewAt ?? 0) - clock.monotonic()).toBe(30_000)
    state.fails = false
    await clock.advance(30_000)
    expect(await get()).toBe('t3')
  })

  it('fails when there never was one', async () => {
    const { state, get } = setUp()
    state.fails = true
    await expect(get()).rejects.toThrow('away')
  })
})
