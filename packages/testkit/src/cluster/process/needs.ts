import { inject, it, TestRunner } from 'vitest'
import type { Plane } from '../cluster-access.ts'
import type {} from '../global-setup.ts'

/** Needs of a test beyond an API server with controllers. Every plane of Kubernetes has all of them. */
export type Need = 'rbac' | 'client-certificates' | 'exec' | 'portforward' | 'resource-quotas'

const LACKING: Readonly<Record<Plane, readonly Need[]>> = {
  kubernetes: [],
  embedded: ['rbac', 'client-certificates', 'exec', 'portforward', 'resource-quotas'],
}

/** A test that this plane cannot run. It is not registered, so not skipped either: the run counts it and compares with what is expected. */
export interface Exclusion {
  readonly title: string
  readonly need: Need
}

declare module 'vitest' {
  interface TaskMeta {
    /** Of a file. */
    thvExclusions?: Exclusion[]
  }
}

/** `it` for a test that not every plane can run. */
export function itNeeds(needs: readonly Need[], title: string, fn: () => void | Promise<void>, timeoutMs?: number): void {
  if (!isExcluded(title, needs)) it(title, fn, timeoutMs)
}

/** True when this run's plane lacks one of the needs; the test is then counted as excluded. */
export function isExcluded(title: string, needs: readonly Need[]): boolean {
  const lacking = LACKING[inject('thvCluster')?.plane ?? 'kubernetes']
  const need = needs.find((each) => lacking.includes(each))
  if (need === undefined) return false
  const { meta } = TestRunner.getCurrentSuite().file
  meta.thvExclusions = [...(meta.thvExclusions ?? []), { title, need }]
  return true
}
