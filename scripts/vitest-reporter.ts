import { writeFileSync } from 'node:fs'
import type { Reporter, TestCase, TestModule, TestSuite } from 'vitest/node'

/** One test of a run, as the gate needs it. */
export interface TestRecord {
  /** Path below the root of the project. */
  file: string
  /** Names of the describe blocks around it, outermost first. */
  suites: string[]
  title: string
  state: 'passed' | 'failed' | 'skipped'
  /** Declared with `it.fails`: it passes when its body throws. */
  expectedToFail: boolean
  /** Passed, but not at the first try. */
  secondTry: boolean
  /** First error of the test, or of its first try. */
  reason: string
}

/** Result of one vitest call. `errors` are those outside of any test: a file that does not load, a hook, an unhandled rejection. */
export interface VitestRecord {
  tests: TestRecord[]
  errors: { file: string; reason: string }[]
}

/** Writes the record of the run to the file named by THV_VITEST_RECORD. */
class RecordingReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const path = process.env['THV_VITEST_RECORD']
    if (!path) return
    const record: VitestRecord = { tests: [], errors: unhandled.map((error) => ({ file: 'outside of any test', reason: reason(error) })) }
    for (const module of modules) {
      const file = module.relativeModuleId
      record.errors.push(...module.errors().map((error) => ({ file, reason: reason(error) })))
      for (const suite of module.children.allSuites())
        record.errors.push(...suite.errors().map((error) => ({ file: `${file} > ${suite.fullName}`, reason: reason(error) })))
      for (const test of module.children.allTests()) record.tests.push(recordOf(file, test))
    }
    writeFileSync(path, JSON.stringify(record))
  }
}

function recordOf(file: string, test: TestCase): TestRecord {
  const { state, errors } = test.result()
  return {
    file,
    suites: suitesOf(test),
    title: test.name,
    // A test that is still pending when the run ends did not pass.
    state: state === 'passed' || state === 'skipped' ? state : 'failed',
    expectedToFail: test.options.fails === true,
    secondTry: state === 'passed' && test.diagnostic()?.flaky === true,
    reason: errors?.[0] ? reason(errors[0]) : '',
  }
}

function suitesOf(test: TestCase): string[] {
  const names: string[] = []
  for (let parent: TestSuite | TestModule = test.parent; parent.type === 'suite'; parent = parent.parent) names.unshift(parent.name)
  return names
}

function reason(error: unknown): string {
  const message = typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : String(error)
  return message.replace(/\s+/g, ' ').slice(0, MAX_REASON)
}

const MAX_REASON = 300

export default RecordingReporter
