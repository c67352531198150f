import type { Condition } from '@thv/kube'
import { MCPServerCondition } from '@thv/resources/kinds/mcp-server/constants'
import { describe, expect, test } from 'vitest'
import { aliasTaken } from '../../proxy/services.ts'
import type { WorkloadPlan } from '../deployment-plan.ts'
import { type WorkloadStatusInput, workloadEvents, workloadStatusOf } from './deployment-status.ts'
import type { PodsHealth } from './pods-health.ts'

const plan: WorkloadPlan = {
  guards: [],
  children: [],
  alias: undefined,
  unwanted: [],
  conditions: [],
  status: { group: 'g', toolConfigHash: 'h' },
  blockers: [],
  unsupported: [],
  stopsWhatRuns: false,
  url: 'http://somewhere/mcp',
}
const health: PodsHealth<string> = {
  phase: 'Running',
  reason: 'Ready',
  message: '1 of 1 proxy pods ready.',
  replicas: 1,
  readyReplicas: 1,
  serverReadyReplicas: 1,
}
const input: WorkloadStatusInput = {
  selector: 'app=mcpserver,app.kubernetes.io/name=mcpserver,app.kubernetes.io/instance=x,toolhive=true,toolhive-name=x',
  countsReady: true,
  aliasTaken: (name) => aliasTaken('MCPServer', name),
  generation: 3,
  plan,
  executed: { conflicts: [], aliasTaken: undefined },
  health,
  managed: Object.values(MCPServerCondition),
  readyPhase: 'Running',
  now: Date.parse('2026-01-01T00:00:00Z'),
}
const object = { metadata: { name: 'x', namespace: 'team', generation: 3 } }
const conditionsOf = (status: Record<string, unknown>) =>
  Object.fromEntries((status['conditions'] as Condition[]).map(({ type, status: value, reason }) => [type, `${value} ${reason}`]))

describe('workloadStatusOf', () => {
  test('a server that runs', () => {
    const status = workloadStatusOf(object, input)
    expect(status).toMatchObject({
      phase: 'Running',
      url: 'http://somewhere/mcp',
      group: 'g',
      toolConfigHash: 'h',
      observedGeneration: 3,
      replicas: 1,
      readyReplicas: 1,
      selector: 'app=mcpserver,app.kubernetes.io/name=mcpserver,app.kubernetes.io/instance=x,toolhive=true,toolhive-name=x',
    })
    expect(conditionsOf(status)).toEqual({ Ready: 'True Ready', ConfigurationValid: 'True ConfigurationValid' })
  })

  test('joins the messages of blockers of one type, before those of their resolver', () => {
    const blockers = [
      { condition: 'ConfigurationValid', reason: 'SecretNotFound', message: 'no a' },
      { condition: 'ConfigurationValid', reason: 'InvalidSpec', message: 'no b' },
      { condition: 'ToolConfigValidated', reason: 'ToolConfigNotFound', message: 'no t' },
    ]
    const conditions = [{ type: 'ToolConfigValidated', status: 'True', reason: 'ToolConfigValid', message: 'fine' } as const]
    const status = workloadStatusOf(object, { ...input, plan: { ...plan, blockers, conditions } })
    expect(status).toMatchObject({ phase: 'Failed', message: 'no a' })
    expect(conditionsOf(status)).toEqual({
      Ready: 'False NotReady',
      ToolConfigValidated: 'False ToolConfigNotFound',
      ConfigurationValid: 'False SecretNotFound',
    })
    const [valid] = (status['conditions'] as Condition[]).filter(({ type }) => type === 'ConfigurationValid')
    expect(valid?.message).toBe('no a; no b')
  })

  test('names the fields that cannot be applied yet', () => {
    const status = workloadStatusOf(object, { ...input, plan: { ...plan, unsupported: [{ field: 'oidc_config', middleware: 'auth' }] } })
    expect(status['phase']).toBe('Failed')
    expect(status['message']).toContain('oidc_config (auth)')
    expect(conditionsOf(status)).toMatchObject({
      MiddlewareUnsupported: 'True MiddlewareUnsupported',
      ConfigurationValid: 'True ConfigurationValid',
    })
  })

  test('a taken name', () => {
    const conflicts = [{ kind: 'foreign', name: 'x', childKind: 'Deployment', controller: 'MCPRemoteProxy x' } as const]
    const status = workloadStatusOf(object, { ...input, executed: { conflicts, aliasTaken: undefined } })
    expect(status['message']).toBe(
      'There is a Deployment x already, which belongs to MCPRemoteProxy x: delete it, or give this workload another name.',
    )
    expect(conditionsOf(status)).toMatchObject({ NameConflict: 'True NameTakenByOtherWorkload', Ready: 'False NotReady' })
  })

  test('conditions that say nothing any more go; those of others stay', () => {
    const at = '2025-01-01T00:00:00Z'
    const old = (type: string): Condition => ({ type, status: 'True', reason: 'R', message: 'm', lastTransitionTime: at })
    const before = { ...object, status: { conditions: [old('NameConflict'), old('example.test/Theirs')] } }
    expect(conditionsOf(workloadStatusOf(before, input))).toEqual({
      'example.test/Theirs': 'True R',
      Ready: 'True Ready',
      ConfigurationValid: 'True ConfigurationValid',
    })
  })

  test('it is about the spec that was looked at, not about one that came meanwhile', () => {
    const status = workloadStatusOf({ metadata: { ...object.metadata, generation: 4 } }, input)
    expect(status).toMatchObject({ observedGeneration: 3, conditions: [{ observedGeneration: 3 }, { observedGeneration: 3 }] })
  })

  test('writing it twice changes nothing', () => {
    const first = workloadStatusOf(object, input)
    expect(workloadStatusOf({ ...object, status: first }, { ...input, now: input.now + 60_000 })).toEqual(first)
  })
})

describe('workloadEvents', () => {
  const ready = (status: 'True' | 'False', reason: string): Condition => ({
    type: 'Ready',
    status,
    reason,
    message: 'm',
    lastTransitionTime: '2025-01-01T00:00:00Z',
  })
  test('a new workload on its way is no news, a failed one is', () => {
    expect(workloadEvents(undefined, [ready('False', 'NotReady')], 'Pending')).toEqual([])
    expect(workloadEvents(undefined, [ready('False', 'CrashLoopBackOff')], 'Failed')).toMatchObject([{ type: 'Warning' }])
    expect(workloadEvents([ready('False', 'NotReady')], [ready('True', 'Ready')], 'Running')).toMatchObject([{ type: 'Normal' }])
  })
})
