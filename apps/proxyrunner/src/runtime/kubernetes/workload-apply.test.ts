import { type KubeClient, type KubeObject, type StatefulSet, services, statefulSets } from '@thv/kube'
import { describe, expect, it } from 'vitest'
import { isRuntimeError } from '../runtime-errors.ts'
import { configOf } from '../testing/runtime-fixtures.ts'
import { desiredObjects } from './desired-objects.ts'
import { createApplier, FIELD_MANAGER, isSuperseded, needsReplacement, refuseForeign } from './workload-apply.ts'

const OWNER = { api_version: 'v1', kind: 'MCPServer', name: 'demo', uid: 'u1' }
const guard = (text: string | undefined) =>
  text === undefined ? {} : { annotations: { 'toolhive.stacklok.dev/mcpserver-generation': text } }
const withGeneration = (text: string | undefined): StatefulSet => ({ metadata: { name: 'demo', ...guard(text) } })
/** As ToolHive (Go) makes it. */
const inTemplate = (text: string | undefined): StatefulSet => ({
  metadata: { name: 'demo' },
  spec: { template: { metadata: guard(text) } },
})
const owned = (uid?: string, controller = true): KubeObject => ({
  kind: 'Service',
  metadata: { name: 'mcp-demo', ...(uid && { ownerReferences: [{ apiVersion: 'v1', kind: 'Other', name: 'o', uid, controller }] }) },
})

describe('isSuperseded', () => {
  it.each([
    [7, '8', true],
    [7, '7', false],
    [7, '6', false],
    [9, '10', true],
    [7, undefined, false],
    [7, 'x', false],
    [7, '-8', false],
    [0, '8', false],
  ])('of generation %s beside %s is %s', (own, live, expected) => {
    for (const where of [withGeneration, inTemplate])
      expect(isSuperseded(where(live), configOf({ mcpserver_generation: own }))).toBe(expected)
  })

  it('of nothing is false', () => {
    expect(isSuperseded(undefined, configOf({ mcpserver_generation: 7 }))).toBe(false)
  })
})

describe('refuseForeign', () => {
  const labels = { toolhive: 'true', app: 'demo', 'toolhive-basename': 'demo' }
  const unowned = (manager: string, own: Record<string, string> = labels): KubeObject => ({
    metadata: { name: 'mcp-demo', labels: own, managedFields: [{ manager, operation: 'Apply' }] },
  })
  const refused = (live: KubeObject, document: Record<string, unknown>) =>
    attempt(() => refuseForeign(live, { type: services, config: configOf(document) }))

  it('accepts what our owner controls, and what a runner of this server made without an owner', () => {
    expect(refused(owned('u1'), { owner: OWNER })).toBeUndefined()
    for (const document of [{ owner: OWNER }, {}]) expect(refused(unowned(FIELD_MANAGER), document)).toBeUndefined()
  })

  it.each([
    ['of another controller', owned('u2'), 'belongs to Other o'],
    ['of another owner that does not control it', owned('u2', false), 'belongs to Other o'],
    ['of our owner, who does not control it', owned('u1', false), 'belongs to Other o'],
    ['without owner, labels and manager', owned(), 'which this server did not make'],
    ['with our labels and another manager', unowned('kubectl'), 'which this server did not make'],
    ['with our manager and the labels of another server', unowned(FIELD_MANAGER, { ...labels, app: 'other' }), 'did not make'],
  ])('rejects an object %s', (_, live, whose) => {
    const error = refused(live, { owner: OWNER })
    expect(isRuntimeError(error, 'workload_foreign')).toBe(true)
    expect(String(error)).toContain('There is a Service mcp-demo already')
    expect(String(error)).toContain(whose)
  })

  it('rejects an object with an owner when the config names none', () => {
    expect(isRuntimeError(refused(owned('u2'), {}), 'workload_foreign')).toBe(true)
  })
})

describe('needsReplacement', () => {
  const { statefulSet } = desiredObjects(configOf({}), { namespace: 'n' })
  it('is so for immutable fields, such as a StatefulSet of ToolHive (Go)', () => {
    expect(needsReplacement(statefulSet, statefulSet)).toBe(false)
    expect(needsReplacement({ ...statefulSet, spec: { ...statefulSet.spec, serviceName: 'demo' } }, statefulSet)).toBe(true)
    expect(
      needsReplacement({ ...statefulSet, spec: { ...statefulSet.spec, selector: { matchLabels: { app: 'demo' } } } }, statefulSet),
    ).toBe(true)
    // The default, which the API server fills in.
    const ordered = { ...statefulSet, spec: { ...statefulSet.spec, podManagementPolicy: 'OrderedReady' } }
    expect(needsReplacement(ordered, statefulSet)).toBe(true)
  })
})

describe('createApplier', () => {
  const setUp = () => {
    const calls: { object: KubeObject; opts: unknown }[] = []
    let version = 1
    const client: Pick<KubeClient, 'apply'> = {
      apply: async (_type, object, opts) => {
        calls.push({ object, opts })
        return { ...object, metadata: { ...object.metadata, uid: 'u', resourceVersion: String(version++), generation: 1 } }
      },
    }
    return { calls, applier: createApplier(client, new AbortController().signal) }
  }
  const desired: StatefulSet = { metadata: { name: 'demo', namespace: 'n' }, spec: { replicas: 1 } }

  it('applies by force under its own name, pinned to what was looked at', async () => {
    const { calls, applier } = setUp()
    await applier.ensure(statefulSets, desired, { ...desired, metadata: { ...desired.metadata, resourceVersion: '77' } })
    expect(calls[0]?.opts).toMatchObject({ fieldManager: 'toolhive-container-manager', force: true })
    expect(calls[0]?.object.metadata.resourceVersion).toBe('77')
    expect(FIELD_MANAGER).toBe('toolhive-container-manager')
  })

  it('only creates when it knows of no live object', async () => {
    const { calls, applier } = setUp()
    await applier.ensure(statefulSets, desired, undefined)
    expect(calls[0]?.object.metadata.resourceVersion).toBe('1')
  })

  it('does nothing while the object is as it left it, whatever happens to its status', async () => {
    const { calls, applier } = setUp()
    await applier.ensure(statefulSets, desired, undefined)
    const left = applier.lastOf(statefulSets, 'demo')
    if (left === undefined) throw new Error('nothing applied')
    const later = { ...left, metadata: { ...left.metadata, resourceVersion: '99' }, status: { readyReplicas: 1 } }
    await applier.ensure(statefulSets, desired, later)
    expect(calls).toHaveLength(1)
    await applier.ensure(statefulSets, desired, { ...later, spec: { replicas: 5 } })
    await applier.ensure(statefulSets, desired, { ...later, metadata: { ...later.metadata, labels: { a: 'b' } } })
    expect(calls).toHaveLength(3)
    applier.forget(statefulSets, 'demo')
    await applier.ensure(statefulSets, desired, later)
    expect(applier.applies).toBe(4)
  })
})

function attempt(fn: () => unknown): unknown {
  try {
    return fn()
  } catch (error) {
    return error
  }
}
