import type { Requirement } from './requirement.ts'

/**
 * Compares the rows with the titles of the tests that passed, after the run. Returns what is wrong.
 * One title may cite several rows: `[003-001] [003-002]`.
 */
export function judgeCoverage(rows: readonly Requirement[], passedTitles: readonly string[]): string[] {
  const cited = new Set(passedTitles.flatMap((title) => [...title.matchAll(/\[(\d{3}-\d{3})\]/g)].map((match) => match[1] ?? '')))
  const known = new Set<string>(rows.map((row) => row.id))
  return [
    ...rows
      .filter((row) => row.state === 'met' && !cited.has(row.id))
      .map((row) => `${row.id} claims to be met, but no passed test cites [${row.id}]`),
    ...rows
      .filter((row) => row.state === 'planned' && cited.has(row.id))
      .map((row) => `${row.id} is cited by a passed test but still says planned`),
    ...[...cited].filter((id) => !known.has(id)).map((id) => `a test cites [${id}], which is no requirement`),
  ]
}
