import { type Deployment, KubeApiError, type KubeClient, type KubeObject, type ObjectKey } from '@thv/kube'
import { mcpServerType } from '@thv/resources/kinds/mcp-server/schema'
import { beforeEach, describe, expect, test } from 'vitest'
import type { CacheSpec } from '../caches/cache-spec.ts'
import type { Env } from '../environment.ts'
import type { ChildApplier, Owner } from './child-applier.ts'
import type { WorkloadPlan } from './deployment-plan.ts'
import { STOPPED_ANNOTATION } from './deployment-plan.ts'
import { executePlan } from './execute-plan.ts'

const owner: Owner = { object: { metadata: { name: 'x', namespace: 'team', uid: 'u' } }, type: mcpServerType }
const ownedBy = (kind: string, uid: string) => ({ ownerReferences: [{ apiVersion: 'v1', kind, name: 'x', uid, controller: true }] })
const owned = ownedBy('MCPServer', 'u')
const signal = new AbortController().signal

let cached: Map<string, KubeObject>
let done: string[]
let foreign: Set<string>
let patchError: Error | undefined

const children: ChildApplier = {
  latest: ({ cache }, key) => cache.get(key),
  async ensure(_owner, { type, object }) {
    done.push(`ensure ${type.kind} ${object.metadata.name}`)
    return foreign.has(object.metadata.name)
      ? { kind: 'foreign', name: object.metadata.name, childKind: type.kind, controller: undefined }
      : { kind: 'applied' }
  },
  async remove(_owner, { type, name }) {
    done.push(`remove ${type.kind} ${name}`)
  },
}
const client = {
  async patch(_type: unknown, key: ObjectKey, patch: { body: unknown }) {
    done.push(`patch ${key.name} ${JSON.stringify(patch.body)}`)
    if (patchError) throw patchError
  },
} as unknown as KubeClient
const caches = { of: ({ type }: CacheSpec) => ({ get: ({ name }: ObjectKey) => cached.get(`${type.plural}/${name}`) }) }
const env = { children, client, caches } as unknown as Env

const named = (name: string) => ({ metadata: { name, namespace: 'team' } })
const plan: WorkloadPlan = {
  guards: [{ kind: 'NetworkPolicy', object: named('x-mcp') }],
  children: [
    { kind: 'ConfigMap', object: named('x-runconfig') },
    { kind: 'Deployment', object: named('x') },
  ],
  alias: named('x'),
  unwanted: [{ kind: 'ServiceAccount', name: 'x-sa' }],
  conditions: [],
  status: {},
  blockers: [],
  unsupported: [],
  stopsWhatRuns: false,
  url: '',
}
const unguarded = { ...plan, guards: [] }
const blocked: WorkloadPlan = { ...plan, blockers: [{ condition: 'C', reason: 'R', message: 'm' }] }
const running: Deployment = { metadata: { name: 'x', namespace: 'team', ...owned }, spec: { replicas: 2 } }

beforeEach(() => {
  cached = new Map()
  done = []
  foreign = new Set()
  patchError = undefined
})

describe('executePlan', () => {
  test('makes all in order, the guard before what it guards, then takes away', async () => {
    expect(await executePlan(plan, owner, env, signal)).toEqual({ conflicts: [], aliasTaken: undefined })
    expect(done).toEqual([
      'ensure NetworkPolicy x-mcp',
      'ensure ConfigMap x-runconfig',
      'ensure Deployment x',
      'ensure Service x',
      'remove ServiceAccount x-sa',
    ])
  })

  test('without an alias the one of an earlier state goes', async () => {
    await executePlan({ ...plan, alias: undefined }, owner, env, signal)
    expect(done).toContain('remove Service x')
  })

  test('makes nothing at all when a name is taken', async () => {
    cached.set('deployments/x', {
      metadata: { name: 'x', ...ownedBy('MCPRemoteProxy', 'other') },
    })
    const { conflicts } = await executePlan(unguarded, owner, env, signal)
    expect(conflicts).toEqual([{ kind: 'foreign', name: 'x', childKind: 'Deployment', controller: 'MCPRemoteProxy x' }])
    expect(done).toEqual([])
  })

  test('stops at a name that turns out to be taken', async () => {
    foreign.add('x-runconfig')
    const { conflicts } = await executePlan(plan, owner, env, signal)
    expect(conflicts).toMatchObject([{ name: 'x-runconfig' }])
    expect(done).toEqual(['ensure NetworkPolicy x-mcp', 'ensure ConfigMap x-runconfig'])
  })

  test('an alias gives way, and the rest is made', async () => {
    foreign.add('x')
    const { conflicts, aliasTaken } = await executePlan({ ...plan, children: plan.children.slice(0, 1) }, owner, env, signal)
    expect({ conflicts, aliasTaken }).toMatchObject({ conflicts: [], aliasTaken: { name: 'x' } })
    expect(done).toContain('remove ServiceAccount x-sa')
  })

  test('a blocked plan makes the guards and changes nothing else', async () => {
    cached.set('deployments/x', running)
    await executePlan(blocked, owner, env, signal)
    expect(done).toEqual(['ensure NetworkPolicy x-mcp'])
  })

  test('but stops what stands open, once, and only its own', async () => {
    const open = { ...blocked, guards: [], stopsWhatRuns: true }
    await executePlan(open, owner, env, signal)
    expect(done).toEqual([])
    cached.set('deployments/x', { metadata: { name: 'x' }, spec: { replicas: 2 } } as Deployment)
    await executePlan(open, owner, env, signal)
    expect(done).toEqual([])
    cached.set('deployments/x', running)
    await executePlan(open, owner, env, signal)
    expect(done).toEqual([`patch x {"metadata":{"annotations":{"${STOPPED_ANNOTATION}":"true"}},"spec":{"replicas":0}}`])
    done = []
    cached.set('deployments/x', { ...running, spec: { replicas: 0 } } as Deployment)
    await executePlan(open, owner, env, signal)
    expect(done).toEqual([])
  })

  test('a Deployment that is gone needs no stopping; any other failure is an error', async () => {
    cached.set('deployments/x', running)
    const failure = (status: number) => new KubeApiError({ status, call: { verb: 'patch', target: 'x' }, body: undefined })
    patchError = failure(404)
    await executePlan({ ...blocked, stopsWhatRuns: true }, owner, env, signal)
    patchError = failure(500)
    await expect(executePlan({ ...blocked, stopsWhatRuns: true }, owner, env, signal)).rejects.toThrow('500')
  })
})
