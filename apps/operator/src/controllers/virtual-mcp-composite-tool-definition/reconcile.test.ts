import { done, getCondition } from '@thv/kube'
import type { VirtualMCPCompositeToolDefinition } from '@thv/resources/kinds/virtual-mcp-composite-tool-definition/schema'
import { checkWorkflow } from '@thv/workflow/check-workflow'
import { describe, expect, it } from 'vitest'
import { type MemoryCluster, memoryCluster } from '../../testing/memory-cluster.ts'
import { reconcileCompositeToolDefinition } from './reconcile.ts'

const KIND = 'VirtualMCPCompositeToolDefinition'
const step = (id: string, rest: object = {}) => ({ id, tool: 'echo', ...rest })
const definition = (spec: object = {}) =>
  ({ kind: KIND, metadata: { name: 'order' }, spec: { name: 'order', description: 'Orders.', steps: [step('one')], ...spec } }) as never
const server = (name: string, spec: object) =>
  ({ kind: 'VirtualMCPServer', metadata: { name }, spec: { groupRef: 'g', incomingAuth: { type: 'anonymous' }, ...spec } }) as never

async function reconcile(cluster: MemoryCluster) {
  const context = { signal: new AbortController().signal, attempt: 1 }
  const outcome = await reconcileCompositeToolDefinition({ namespace: 'team', name: 'order' }, cluster.env, context)
  const object = cluster.object<VirtualMCPCompositeToolDefinition>(KIND, 'order')
  return { outcome, object, status: object?.status, condition: (type: string) => getCondition(object?.status?.conditions as never, type) }
}

describe('reconcileCompositeToolDefinition', () => {
  it('a valid definition is Ready, with one write and nothing else', async () => {
    const cluster = memoryCluster()
    cluster.put(definition())
    const { outcome, status, object } = await reconcile(cluster)
    expect(outcome).toEqual(done)
    expect(status).toEqual({ observedGeneration: 1, validationStatus: 'Valid', conditions: expect.any(Array) })
    expect(status?.conditions?.map(({ type, status: is, reason }) => [type, is, reason])).toEqual([
      ['WorkflowValidated', 'True', 'ValidationSuccess'],
      ['Ready', 'True', 'WorkflowReady'],
    ])
    expect(object?.metadata.finalizers).toBeUndefined()
    expect(cluster.writes).toHaveLength(1)
    expect(cluster.events).toEqual([])
    await reconcile(cluster)
    expect(cluster.writes).toHaveLength(1)
  })

  it.each<[string, object, string]>([
    ['DependencyCycle', { steps: [step('a', { dependsOn: ['b'], arguments: { x: '{{' } }), step('b', { dependsOn: ['a'] })] }, 'a → b → a'],
    ['SchemaInvalid', { parameters: { type: 'object', properties: { a: { type: 'text' } } } }, 'spec.parameters: is not a JSON Schema'],
    ['TemplateInvalid', { steps: [step('a', { arguments: { x: '{{.params.y}}' } })] }, 'spec.steps[0].arguments.x (step a): column 3:'],
    ['ValidationFailed', { steps: [step('a', { dependsOn: ['b'] })] }, 'spec.steps[0].dependsOn names b'],
  ])('%s: the errors are those of the check, by step and field', async (reason, spec, text) => {
    const cluster = memoryCluster()
    cluster.put(definition(spec))
    const { status, condition, object } = await reconcile(cluster)
    expect(status?.validationStatus).toBe('Invalid')
    expect(status?.validationErrors).toEqual(checkWorkflow(object?.spec as never).problems.map(({ message }) => message))
    expect(condition('WorkflowValidated')).toMatchObject({ status: 'False', reason })
    expect(condition('WorkflowValidated')?.message).toContain(text)
    expect(condition('Ready')).toMatchObject({ status: 'False', reason: 'WorkflowNotReady' })
    expect(cluster.events.map(({ type, reason: of }) => [type, of])).toEqual([['Warning', reason]])
    cluster.put(definition())
    expect((await reconcile(cluster)).status).toMatchObject({ validationStatus: 'Valid', observedGeneration: 2 })
    expect((await reconcile(cluster)).status).not.toHaveProperty('validationErrors')
  })

  it('lists the servers that name it in either place, sorted, and drops those that no longer do', async () => {
    const cluster = memoryCluster()
    const ref = [{ name: 'order' }]
    for (const object of [
      definition(),
      server('z', { compositeToolRefs: ref }),
      server('a', { config: { compositeToolRefs: ref } }),
      server('other', { compositeToolRefs: [{ name: 'another' }] }),
    ])
      cluster.put(object)
    expect((await reconcile(cluster)).status?.referencingVirtualServers).toEqual(['a', 'z'])
    cluster.put(server('z', {}))
    expect((await reconcile(cluster)).status?.referencingVirtualServers).toEqual(['a'])
    cluster.put(server('a', {}))
    expect((await reconcile(cluster)).status).not.toHaveProperty('referencingVirtualServers')
  })
})
