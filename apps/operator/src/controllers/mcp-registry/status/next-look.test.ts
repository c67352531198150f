import { done, requeueAfter } from '@thv/kube'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import { describe, expect, it } from 'vitest'
import { planOf } from '../testing/plan-registry.ts'
import { nextLook } from './next-look.ts'
import type { SyncFacts } from './sync-status.ts'

const idle: SyncFacts = { status: undefined, conditions: [], neverSucceeded: false, pending: false }
const registries: MCPRegistry['spec'] = { registries: [{ name: 'here', managed: {} }] }
const at = (spec: MCPRegistry['spec'], facts: Partial<SyncFacts> = {}, random = 0) =>
  nextLook({ ...idle, ...facts }, planOf(spec), () => random)

describe('nextLook', () => {
  it('asks an idle server at most once a minute, and not all servers at once', () => {
    expect([at(registries, {}, 0), at(registries, {}, 1)]).toEqual([requeueAfter(60_000), requeueAfter(72_000)])
    expect(at({ configYAML: 'auth: {mode: anonymous}' })).toEqual(requeueAfter(60_000))
  })

  it('asks soon while something is under way: a sync, or a trigger that the server has not done', () => {
    expect(at(registries, { pending: true })).toEqual(requeueAfter(5_000))
    const plan = planOf(registries, { metadata: { annotations: { 'toolhive.stacklok.dev/sync-trigger': '2' } } })
    expect(nextLook({ ...idle, doneTrigger: '1' }, plan, () => 0)).toEqual(requeueAfter(5_000))
    expect(nextLook({ ...idle, doneTrigger: '2' }, plan, () => 0)).toEqual(requeueAfter(60_000))
  })

  it('asks nothing without an API, nor for data that the operator syncs, but for the next sync', () => {
    const source: MCPRegistry['spec'] = { source: { configMap: { name: 'm' } } }
    expect([at({ ...registries, api: { enabled: false } }), at(source)]).toEqual([done, done])
    expect([at(source, { nextMs: 30_000 }, 0), at(source, { nextMs: 30_000 }, 1)]).toEqual([requeueAfter(30_000), requeueAfter(36_000)])
    expect(at(source, { nextMs: 3_600_000 }, 1)).toEqual(requeueAfter(3_630_000))
  })
})
