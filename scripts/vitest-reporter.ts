import { writeFileSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'

/** What one vitest call came to; `scripts/test.ts` adds these up. */
export interface VitestCounts {
  passed: number
  failed: number
  skipped: number
  passedTitles: string[]
  /** One line each: where, and the first words of why. */
  failures: string[]
  /** Passed, but not at the first try; one line each, as of failures. */
  unsteady: string[]
}

/** Writes the counts to the file named by THV_VITEST_COUNTS. A file that does not load, and an unhandled error, count as failed. */
class CountingReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const path = process.env['THV_VITEST_COUNTS']
    if (!path) return
    const counts: VitestCounts = { passed: 0, failed: unhandled.length, skipped: 0, passedTitles: [], failures: [], unsteady: [] }
    for (const error of unhandled) counts.failures.push(`outside of any test: ${reason(error)}`)
    for (const module of modules) {
      counts.failed += module.errors().length
      for (const error of module.errors()) counts.failures.push(`${module.relativeModuleId}: ${reason(error)}`)
      for (const test of module.children.allTests()) {
        const { state, errors } = test.result()
        if (state === 'passed') {
          counts.passed += 1
          counts.passedTitles.push(test.fullName)
          if (test.diagnostic()?.flaky) counts.unsteady.push(`${module.relativeModuleId} > ${test.fullName}: ${reason(errors?.[0])}`)
        } else if (state === 'skipped') counts.skipped += 1
        else {
          counts.failed += 1
          counts.failures.push(`${module.relativeModuleId} > ${test.fullName}: ${reason(errors?.[0])}`)
        }
      }
    }
    writeFileSync(path, JSON.stringify(counts))
  }
}

function reason(error: unknown): string {
  const message = typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : String(error)
  return message.replace(/\s+/g, ' ').slice(0, MAX_REASON)
}

const MAX_REASON = 300

export default CountingReporter
