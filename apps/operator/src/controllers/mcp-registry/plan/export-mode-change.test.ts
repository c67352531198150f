import type { ConfigMap, Deployment } from '@thv/kube'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import { describe, expect, it } from 'vitest'
import { COMPONENT_LABEL } from '../objects/names.ts'
import { deploymentOf, planOf } from '../testing/plan-registry.ts'
import { ownedDataMaps } from './owned-data.ts'

const specOf = (mode: 'server' | 'operator' | 'none'): MCPRegistry['spec'] => ({
  registries: [{ name: 'a', managed: {} }],
  export: { mode },
})
const registryOf = (mode: 'server' | 'operator' | 'none') =>
  ({ metadata: { name: 'demo', namespace: 'team', uid: 'uid-demo' }, spec: specOf(mode) }) as MCPRegistry
const owner = { apiVersion: 'toolhive.stacklok.dev/v1beta1', kind: 'MCPRegistry', name: 'demo', uid: 'uid-demo', controller: true }
const exportMap = {
  metadata: {
    name: 'demo-registry-export',
    namespace: 'team',
    labels: { [COMPONENT_LABEL]: 'registry-export' },
    ownerReferences: [owner],
  },
} as ConfigMap
const live = (status: Deployment['status']): Deployment =>
  ({ metadata: { name: 'demo-api', namespace: 'team', generation: 4 }, spec: { replicas: 1 }, status }) as Deployment
const DONE = { observedGeneration: 4, replicas: 1, updatedReplicas: 1, readyReplicas: 1 }

describe('a change of the mode of an export', () => {
  it.each([
    ['the Deployment was not seen yet', { ...DONE, observedGeneration: 3 }, []],
    ['an old pod is left', { ...DONE, replicas: 2 }, []],
    ['the new pod is not ready', { ...DONE, readyReplicas: 0 }, []],
    ['the new pods serve', DONE, ['demo-registry-export']],
  ])('to server removes the ConfigMap only when no pod reads it: %s', (_, status, removed) => {
    const plan = planOf(specOf('server'))
    expect(ownedDataMaps([exportMap], { registry: registryOf('server'), plan, live: live(status) })).toEqual(removed)
  })

  it('to none removes it at once', () => {
    const plan = planOf(specOf('none'))
    const starting = live({ ...DONE, readyReplicas: 0 })
    expect(ownedDataMaps([exportMap], { registry: registryOf('none'), plan, live: starting })).toEqual(['demo-registry-export'])
  })

  it('to operator leaves the pods of mode server, and their rights, until the first data are there', () => {
    const waiting = planOf(specOf('operator'), { live: live(DONE), exportReading: undefined })
    expect([deploymentOf(waiting), waiting.data.wanted, waiting.unwanted]).toEqual([undefined, [], []])
    const written = planOf(specOf('operator'), { live: live(DONE) })
    expect(deploymentOf(written)).toBeDefined()
    expect(written.data.wanted.map(({ metadata }) => metadata.name)).toEqual(['demo-registry-export'])
    expect(written.unwanted.map(({ kind }) => kind)).toEqual(['RoleBinding', 'Role'])
  })

  it('of a new registry waits for nothing', () => {
    expect(deploymentOf(planOf(specOf('operator'), { exportReading: undefined }))).toBeDefined()
  })
})
