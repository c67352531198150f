import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ObjectStore } from '../../../store/object-store.ts'
import { at } from '../../objects/served-kind.ts'
import { deploymentRules } from '../workload/deployment-rules.ts'
import { statefulSetRules } from '../workload/stateful-set-rules.ts'
import { pullPolicyOf } from './image-name.ts'
import { admitPod } from './pod-admission.ts'
import { podDefaults } from './pod-defaults.ts'
import { podRules } from './pod-rules.ts'

const pod = (spec: JsonObject = {}): JsonObject => ({
  metadata: { name: 'p', namespace: 'ns' },
  spec: { containers: [{ name: 'c', image: 'i:1' }], ...spec },
})

function admitted(spec: JsonObject, account: JsonObject = {}): JsonObject {
  const store = new ObjectStore()
  store.create('serviceaccounts', 'ns/default', { metadata: { name: 'default', namespace: 'ns' }, ...account })
  const result = admitPod(podDefaults(pod(spec)), { store })
  store.close()
  return result
}

// The answers themselves are compared with those of a real server, in ../parity.
describe('rules of workloads', () => {
  it('defaults are complete: what was answered means the same when it is sent again', () => {
    const once = podDefaults(pod({ volumes: [{ name: 'v' }], containers: [{ name: 'c', livenessProbe: { grpc: { port: 1 } } }] }))
    expect(podDefaults(once)).toEqual(once)
    const workload = { metadata: { name: 'w' }, spec: { template: pod(), selector: {} } }
    for (const rules of [deploymentRules, statefulSetRules]) {
      const first = rules.applyDefaults?.(workload) ?? {}
      expect(rules.applyDefaults?.(first)).toEqual(first)
    }
  })

  it('defaults of a pod do not change the input', () => {
    const before = pod({ volumes: [] })
    const copy = structuredClone(before)
    podDefaults(before)
    admitted(before['spec'] as JsonObject)
    expect(before).toEqual(copy)
  })

  it('every pod gets a token volume of a name of its own', () => {
    const names = Array.from({ length: 20 }, () => at(admitted({}), 'spec', 'volumes') as readonly JsonObject[]).map(
      ([volume]) => volume?.['name'],
    )
    expect(new Set(names).size).toBe(20)
    for (const name of names) expect(name).toMatch(/^kube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5}$/)
  })

  it('an account can keep its token to itself, and a pod can ask for it all the same', () => {
    const account = { automountServiceAccountToken: false }
    expect(at(admitted({}, account), 'spec', 'volumes')).toBeUndefined()
    expect(at(admitted({ automountServiceAccountToken: true }, account), 'spec', 'volumes')).toHaveLength(1)
  })

  it('a pod that is on no node goes at once, another gets the time that it or its user says', () => {
    const grace = (spec: JsonObject, asked?: number, phase = 'Running') => podRules.gracePeriod?.({ spec, status: { phase } }, asked)
    expect(grace({ terminationGracePeriodSeconds: 5 })).toBe(0)
    expect(grace({ nodeName: 'n', terminationGracePeriodSeconds: 5 })).toBe(5)
    expect(grace({ nodeName: 'n', terminationGracePeriodSeconds: 5 }, 0)).toBe(0)
    expect(grace({ nodeName: 'n', terminationGracePeriodSeconds: -7 })).toBe(1)
    expect(grace({ nodeName: 'n', terminationGracePeriodSeconds: 5 }, undefined, 'Failed')).toBe(0)
  })

  it.each([
    ['i', 'Always'],
    ['i:latest', 'Always'],
    ['host:5000/a/b:latest', 'Always'],
    ['host:5000/a/b', 'Always'],
    ['i:1', 'IfNotPresent'],
    [`i:latest@sha256:${'0'.repeat(64)}`, 'Always'],
    [`i@sha256:${'0'.repeat(64)}`, 'IfNotPresent'],
    ['uvx://package@1', 'IfNotPresent'],
    ['', 'IfNotPresent'],
    ['a'.repeat(64), 'IfNotPresent'],
    [`${'a'.repeat(10_000)}!`, 'IfNotPresent'],
    [`${'a-'.repeat(500)}!`, 'IfNotPresent'],
  ])('pulls %s %s', (image, policy) => {
    expect(pullPolicyOf(image)).toBe(policy)
  })

  it('no spec of the right types makes the rules fail', () => {
    const text = fc.constantFrom('', 'a', 'A', '..', '/', '-1', 'x'.repeat(300), 'ü')
    const item = fc.record(
      { name: text, image: text, mountPath: text, key: text, value: text, containerPort: fc.integer(), valueFrom: fc.constant({}) },
      { requiredKeys: [] },
    )
    const list = fc.array(item, { maxLength: 3 })
    const container = fc.record(
      {
        name: text,
        image: text,
        env: list,
        ports: list,
        volumeMounts: list,
        livenessProbe: fc.constant({}),
        resources: fc.constant({ limits: { cpu: '-1' } }),
      },
      { requiredKeys: [] },
    )
    const spec = fc.record(
      {
        containers: fc.array(container, { maxLength: 2 }),
        initContainers: fc.array(container, { maxLength: 2 }),
        volumes: list,
        tolerations: list,
        restartPolicy: text,
        dnsPolicy: text,
        hostNetwork: fc.boolean(),
        affinity: fc.constant({ podAffinity: {} }),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(spec, (value) => {
        const whole = podRules.applyDefaults?.({ metadata: { name: 'p' }, spec: value as unknown as Json }) ?? {}
        const problems = podRules.validate?.(whole) ?? []
        if (value.containers === undefined || value.containers.length === 0)
          expect(problems.map(({ field }) => field)).toContain('spec.containers')
        for (const { detail, field, message } of problems) expect(detail).toBe(`${field}: ${message}`)
      }),
    )
  })
})
