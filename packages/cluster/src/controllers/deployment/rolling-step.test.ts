import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ReplicaSet } from '../workload/workload-kinds.ts'
import { availableOf, deploymentSettings, sizeOf, sum } from './deployment-settings.ts'
import { type Resize, rollingStep } from './rolling-step.ts'

/** Sizes and how many of them are available. */
const sets = fc.array(
  fc.record({ size: fc.nat(8), missing: fc.nat(8) }).map(({ size, missing }) => ({ size, available: Math.max(0, size - missing) })),
  { minLength: 1, maxLength: 4 },
)
const shares = fc.oneof(
  fc.nat(4),
  fc.integer({ min: 0, max: 100 }).map((percent) => `${percent}%`),
)

describe('a step of a rolling update', () => {
  it('keeps within the surge, and never takes an available pod that is needed', () => {
    fc.assert(
      fc.property(sets, fc.nat(8), shares, shares, (state, replicas, maxSurge, maxUnavailable) => {
        const { rollout, settings } = given(state, replicas, { maxSurge, maxUnavailable })
        const before = [rollout.newest, ...rollout.old]
        const steps = rollingStep(rollout, settings)
        const after = applied(before, steps)
        const grows = sum(after, sizeOf) > sum(before, sizeOf)
        if (grows) expect(sum(after, sizeOf)).toBeLessThanOrEqual(settings.replicas + settings.maxSurge)
        // Pods that are not available go first, so so many stay available.
        const kept = sum(after, (set) => Math.min(availableOf(set), sizeOf(set)))
        const needed = Math.min(settings.replicas - settings.maxUnavailable, sum(before, availableOf))
        const shrinksNewest = sizeOf(rollout.newest) > settings.replicas
        if (!shrinksNewest) expect(kept).toBeGreaterThanOrEqual(needed)
        for (const { to } of steps) expect(to).toBeGreaterThanOrEqual(0)
      }),
    )
  })

  it('comes to an end when all pods get ready', () => {
    fc.assert(
      fc.property(sets, fc.nat(8), shares, shares, (state, replicas, maxSurge, maxUnavailable) => {
        let { rollout, settings } = given(state, replicas, { maxSurge, maxUnavailable })
        for (let count = 0; ; count++) {
          expect(count).toBeLessThan(100)
          const steps = rollingStep(rollout, settings)
          const [newest, ...old] = applied([rollout.newest, ...rollout.old], steps).map(healthy)
          if (newest === undefined) throw new Error('no newest set')
          const stays = steps.length === 0 && [rollout.newest, ...rollout.old].every((set) => availableOf(set) === sizeOf(set))
          rollout = { newest, old }
          if (stays) break
        }
        expect(sizeOf(rollout.newest)).toBe(replicas)
        expect(sum(rollout.old, sizeOf)).toBe(0)
      }),
    )
  })
})

function given(
  state: readonly { size: number; available: number }[],
  replicas: number,
  rollingUpdate: { maxSurge: number | string; maxUnavailable: number | string },
) {
  const [newest, ...old] = state.map(({ size, available }, index) => replicaSet(`set-${index}`, size, available))
  if (newest === undefined) throw new Error('no set')
  const settings = deploymentSettings({ metadata: { name: 'web' }, spec: { replicas, strategy: { type: 'RollingUpdate', rollingUpdate } } })
  return { rollout: { newest, old }, settings }
}

function replicaSet(name: string, replicas: number, availableReplicas: number): ReplicaSet {
  return { metadata: { name }, spec: { replicas }, status: { replicas, availableReplicas } }
}

function applied(sets: readonly ReplicaSet[], steps: readonly Resize[]): ReplicaSet[] {
  return sets.map((set) => ({ ...set, spec: { ...set.spec, replicas: steps.findLast((step) => step.set === set)?.to ?? sizeOf(set) } }))
}

function healthy(set: ReplicaSet): ReplicaSet {
  return replicaSet(set.metadata.name, sizeOf(set), sizeOf(set))
}
