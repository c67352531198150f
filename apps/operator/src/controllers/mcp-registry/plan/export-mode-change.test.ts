import type { ConfigMap, Deployment } from '@thv/kube'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import { describe, expect, it } from 'vitest'
import { planFacts } from '../../../testing/fixture-namespace.ts'
import { foreignAccess } from '../objects/export-access.ts'
import { COMPONENT_LABEL } from '../objects/names.ts'
import { deploymentOf, planOf } from '../testing/plan-registry.ts'
import { ownedDataMaps } from './owned-data.ts'
import type { PlanInput } from './plan.ts'

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

  describe('to operator with more than the ConfigMaps hold', () => {
    const entry = { name: 'x.y/large', version: '1.0.0', text: JSON.stringify({ description: 'x'.repeat(1_000_000) }), tags: [] }
    const exportReading = { result: { entries: [entry], warnings: [] }, problems: [] }
    const withToken = (automountServiceAccountToken: boolean) => {
      const deployment = live(DONE)
      return {
        ...deployment,
        spec: { ...deployment.spec, template: { spec: { containers: [], automountServiceAccountToken } } },
      } as Deployment
    }
    const spec = { ...specOf('operator'), export: { mode: 'operator', namespaces: ['team', 'other'] } } as MCPRegistry['spec']
    const settings = { ...planFacts().settings, registryExport: { namespaces: 'all', clusterRole: undefined } } as PlanInput['settings']
    const planWith = (deployment: Deployment | undefined) => planOf(spec, { live: deployment, exportReading, settings })
    const condition = { type: 'RegistryExport', status: 'False', reason: 'ExportTooLarge' }

    it('leaves the pods of mode server, and their rights everywhere: nothing that was served goes', () => {
      const plan = planWith(withToken(true))
      expect([deploymentOf(plan), plan.data.wanted, plan.unwanted]).toEqual([undefined, [], []])
      expect(plan.conditions).toContainEqual(expect.objectContaining(condition))
      expect(foreignAccess({ name: 'demo', namespace: 'team' }, plan.readable).map(({ role }) => role.metadata.namespace)).toEqual([
        'other',
      ])
      expect(ownedDataMaps([exportMap], { registry: registryOf('operator'), plan, live: withToken(true) })).toEqual([])
    })

    it.each([
      ['keeps the rights of pods that read the cluster', true, ['other']],
      ['grants none to pods that read ConfigMaps, as after a restart of the operator', false, []],
    ])('before the cluster was read %s', (_, readsCluster, namespaces) => {
      const plan = planOf(spec, { live: withToken(readsCluster), exportReading: undefined, settings })
      const access = foreignAccess({ name: 'demo', namespace: 'team' }, plan.readable)
      expect(access.map(({ role }) => role.metadata.namespace)).toEqual(namespaces)
    })

    it('goes on with pods that serve the last good data, or no export at all', () => {
      const plan = planWith(withToken(false))
      expect(deploymentOf(plan)).toBeDefined()
      expect(plan.conditions).toContainEqual(expect.objectContaining(condition))
      expect(foreignAccess({ name: 'demo', namespace: 'team' }, plan.readable)).toEqual([])
      expect(ownedDataMaps([exportMap], { registry: registryOf('operator'), plan, live: withToken(false) })).toEqual([])
    })
  })

  it('of a new registry waits for nothing', () => {
    expect(deploymentOf(planOf(specOf('operator'), { exportReading: undefined }))).toBeDefined()
  })
})
