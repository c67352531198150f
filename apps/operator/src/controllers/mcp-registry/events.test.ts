import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import { describe, expect, it } from 'vitest'
import type { Env } from '../../environment.ts'
import { unsupportedTrigger } from './events.ts'
import { stateOf } from './registry-state.ts'

const registry = (spec: MCPRegistry['spec'], trigger: string) =>
  ({
    metadata: { name: 'demo', namespace: 'team', annotations: { 'toolhive.stacklok.dev/sync-trigger': trigger } },
    spec,
  }) as unknown as MCPRegistry

describe('the sync-trigger of a registry with configYAML', () => {
  it('is answered by a Warning, also when it comes long after the spec', () => {
    expect(unsupportedTrigger(registry({ configYAML: 'a' }, '1'))).toMatchObject([{ type: 'Warning', reason: 'SyncTriggerUnsupported' }])
    expect(unsupportedTrigger(registry({ configYAML: 'a' }, ''))).toEqual([])
    expect(unsupportedTrigger(registry({ registries: [] }, '1'))).toEqual([])
  })

  it('has one Warning for each value', () => {
    const state = stateOf({ caches: {} } as unknown as Env)
    const key = { namespace: 'team', name: 'demo' }
    const told = [undefined, '1', '1', '2', '2', undefined].map((trigger) => state.isNewTrigger(key, trigger))
    expect(told).toEqual([false, true, false, true, false, false])
  })
})
