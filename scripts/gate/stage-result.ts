import type { TestRecord, VitestRecord } from '../vitest-reporter.ts'

/** The result of one stage of `npm test`. Every failed item has a line in `failures`, so that the last lines of a run name it. */
export interface StageResult {
  passed: number
  failures: string[]
  skipped: string[]
  /** Tests that passed at the second try only. */
  secondTries: { name: string; reason: string }[]
  tests: readonly TestRecord[]
}

export function emptyResult(failures: string[] = []): StageResult {
  return { passed: 0, failures, skipped: [], secondTries: [], tests: [] }
}

/** Judges the record of one vitest call; `code` is how vitest ended. */
export function stageResult(stage: string, { tests, errors }: VitestRecord, code: number): StageResult {
  const result = emptyResult(errors.map((error) => `${stage}: ${error.file}: ${error.reason}`))
  for (const test of tests) {
    const name = nameOf(stage, test)
    if (test.state === 'skipped') result.skipped.push(name)
    else if (test.state === 'failed') result.failures.push(`${name}: ${test.reason}`)
    else if (test.expectedToFail) result.failures.push(`${name}: it.fails proves nothing; test what the code does, or remove the test`)
    else {
      result.passed += 1
      if (test.secondTry) result.secondTries.push({ name, reason: test.reason })
    }
  }
  if (result.failures.length === 0 && tests.length === 0) result.failures.push(`${stage}: vitest ran no test`)
  if (result.failures.length === 0 && code !== 0) result.failures.push(`${stage}: vitest ended with code ${code} though no test failed`)
  return { ...result, tests }
}

export function nameOf(stage: string, { file, suites, title }: TestRecord): string {
  return `${stage}: ${[file, ...suites, title].join(' > ')}`
}
