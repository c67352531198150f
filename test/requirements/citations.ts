import type { TestRecord } from '../../scripts/vitest-reporter.ts'
import { type Proof, proofOf } from './proof.ts'

/** Which rows the tests of a run prove, and citations that do not count. */
export interface Citations {
  proven: ReadonlyMap<string, ReadonlySet<Proof>>
  problems: readonly string[]
}

/**
 * Reads the ids in the titles of tests; one title may cite several rows: `[003-001] [003-002]`. An id counts in the title of a test that
 * passed; that it made an assertion is checked by vitest (`expect.requireAssertions`). In the name of a `describe` it would also count
 * for tests that have nothing to do with the row.
 */
export function citationsOf(tests: readonly TestRecord[]): Citations {
  const proven = new Map<string, Set<Proof>>()
  const problems = new Set<string>()
  for (const { file, suites, title, state, expectedToFail } of tests) {
    for (const id of suites.flatMap(idsIn))
      problems.add(`[${id}] stands in a describe of ${file}: cite it in the title of the test that proves it`)
    if (expectedToFail) for (const id of idsIn(title)) problems.add(`[${id}] is cited by an it.fails in ${file}, which proves nothing`)
    if (state !== 'passed' || expectedToFail) continue
    for (const id of idsIn(title)) proven.set(id, (proven.get(id) ?? new Set()).add(proofOf(file)))
  }
  return { proven, problems: [...problems] }
}

export function idsIn(text: string): string[] {
  return [...text.matchAll(/\[(\d{3}-\d{3})\]/g)].map((match) => match[1] ?? '')
}
