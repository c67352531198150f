import { describe } from 'vitest'
import { describeCluster } from '../cluster/test-cluster.ts'
import { isCi } from '../run/run-environment.ts'
import { helmAvailability } from './helm-binary.ts'

/** `describeCluster` for tests that need helm too. Where neither helm nor Go is there they are skipped with a loud line; in CI they fail. */
export function describeHelm(name: string, fn: () => void): void {
  const { kind, reason } = helmAvailability()
  if (kind !== 'unavailable' || isCi()) {
    describeCluster(name, fn)
  } else {
    console.error(`\n!!! NO CHART TESTS: ${reason} !!!\n`)
    describe.skip(name, fn)
  }
}
