import type { EndpointSlice, Pod, Service } from '@thv/kube'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { desiredEndpoints } from './desired-endpoints.ts'
import { planSlices } from './slice-plan.ts'

const service: Service = {
  metadata: { namespace: 'default', name: 'web', uid: 'service-uid' },
  spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 'http' }] },
}

function pod(index: number, { port, ready }: { port: number; ready: boolean }): Pod {
  const ip = `10.0.${Math.floor(index / 250)}.${(index % 250) + 1}`
  return {
    metadata: { namespace: 'default', name: `p${index}`, uid: `uid-${index}` },
    spec: { containers: [{ name: 'main', ports: [{ name: 'http', containerPort: port }] }] },
    status: { phase: 'Running', podIP: ip, conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  }
}

const desired = (pods: readonly Pod[]) => desiredEndpoints(service, pods, () => undefined)

/** Slices on the server after a plan was written. */
function written(existing: readonly EndpointSlice[], pods: readonly Pod[]) {
  const plan = planSlices(service, existing, desired(pods))
  const updated = new Map(plan.update.map((slice) => [slice.metadata.name, slice]))
  const kept = existing.filter((slice) => !plan.remove.includes(slice)).map((slice) => updated.get(slice.metadata.name) ?? slice)
  const taken = existing.length + Math.random()
  const created = plan.create.map((slice, index) => ({ ...slice, metadata: { ...slice.metadata, name: `web-${taken}-${index}` } }))
  return { plan, slices: [...kept, ...created] }
}

const members = (slices: readonly EndpointSlice[]) =>
  slices
    .flatMap(({ endpoints = [], ports = [] }) =>
      endpoints.map(({ addresses, conditions }) => JSON.stringify([addresses, conditions?.ready, ports[0]?.port])),
    )
    .toSorted()

const family = fc.uniqueArray(fc.record({ index: fc.nat(400), port: fc.constantFrom(80, 81), ready: fc.boolean() }), {
  selector: ({ index }) => index,
  maxLength: 350,
})

describe('the plan of slices', () => {
  it('says what the pods say, at most 100 in a slice, and nothing the second time', () => {
    fc.assert(
      fc.property(family, family, (first, second) => {
        let slices: EndpointSlice[] = []
        for (const state of [first, second]) {
          const pods = state.map(({ index, ...rest }) => pod(index, rest))
          ;({ slices } = written(slices, pods))
          const expected = pods.map(({ status, spec }) => {
            const [container] = spec?.containers ?? []
            const [port] = (container?.['ports'] ?? []) as { containerPort: number }[]
            return JSON.stringify([[status?.podIP], status?.conditions?.[0]?.status === 'True', port?.containerPort])
          })
          expect(members(slices)).toEqual(expected.toSorted())
          expect(Math.max(...slices.map(({ endpoints = [] }) => endpoints.length))).toBeLessThanOrEqual(100)
          expect(slices.length).toBeGreaterThan(0)
          const { plan } = written(slices, pods)
          expect([plan.create, plan.update, plan.remove]).toEqual([[], [], []])
        }
      }),
      { numRuns: 60 },
    )
  })

  it('changes only the slice of a pod that changes', () => {
    const pods = Array.from({ length: 250 }, (_, index) => pod(index, { port: 80, ready: true }))
    const { slices } = written([], pods)
    expect(slices.map(({ endpoints = [] }) => endpoints.length)).toEqual([100, 100, 50])
    const { plan } = written(slices, pods.with(120, pod(120, { port: 80, ready: false })))
    expect(plan.update).toHaveLength(1)
    expect(plan.update[0]?.metadata.name).toBe(slices[1]?.metadata.name)
    expect([plan.create, plan.remove]).toEqual([[], []])
  })

  it('puts a new pod where there is room', () => {
    const pods = Array.from({ length: 150 }, (_, index) => pod(index, { port: 80, ready: true }))
    const { slices } = written([], pods)
    const { plan } = written(slices, [...pods, pod(300, { port: 80, ready: true })])
    expect(plan.update.map(({ endpoints = [] }) => endpoints.length)).toEqual([51])
    expect([plan.create, plan.remove]).toEqual([[], []])
  })
})
