import type { Citations } from './citations.ts'
import { type Proof, sorted, suffices } from './proof.ts'
import { type Requirement, subjectOf } from './requirement.ts'

/** Compares the rows with the tests of a run and with the proofs that `docs/features.md` shows. Returns what is wrong. */
export function judgeCoverage(
  rows: readonly Requirement[],
  { proven, problems }: Citations,
  inSources: ReadonlyMap<string, ReadonlySet<Proof>>,
): string[] {
  const known = new Set<string>(rows.map((row) => row.id))
  return [
    ...problems,
    ...rows.flatMap((row) => judgeRow(row, proven.get(row.id) ?? NONE, inSources.get(row.id) ?? NONE)),
    ...[...proven.keys()].filter((id) => !known.has(id)).map((id) => `a test cites [${id}], which is no requirement`),
  ]
}

const NONE: ReadonlySet<Proof> = new Set()

function judgeRow(row: Requirement, ran: ReadonlySet<Proof>, shown: ReadonlySet<Proof>): string[] {
  if (row.state !== 'met') return ran.size > 0 ? [`${row.id} is cited by a passed test but still says ${row.state}`] : []
  if (ran.size === 0) return [`${row.id} claims to be met, but no passed test cites [${row.id}]`]
  if (!suffices(subjectOf(row), ran)) return [`${row.id} is about ${subjectOf(row)}, which ${listOf(ran)} alone does not prove`]
  if (listOf(ran) !== listOf(shown))
    return [`${row.id} was proven by ${listOf(ran)}, docs/features.md shows ${listOf(shown) || 'nothing'}: cite it in titles only`]
  return []
}

const listOf = (proofs: ReadonlySet<Proof>) => sorted(proofs).join(', ')
