import type { Exclusion, Need } from '@thv/testkit/cluster/process/needs'

/** File → title of the test → what it needs. */
export type ExclusionList = Readonly<Record<string, Readonly<Record<string, Need>>>>

/** For people: what this run left out. */
export function exclusionTable(found: Readonly<Record<string, readonly Exclusion[]>>): string {
  const rows = Object.entries(found).flatMap(([file, exclusions]) => exclusions.map(({ title, need }) => ({ need, file, title })))
  const width = Math.max(0, ...rows.map(({ need }) => need.length))
  return [
    `${rows.length} tests need what the embedded control plane does not offer (not skipped: they run on the real one):`,
    ...rows.map(({ need, file, title }) => `  ${need.padEnd(width)}  ${file}: ${title}`),
  ].join('\n')
}

/** Looks only at the files that this run had. */
export function judgeExclusions(expected: ExclusionList, found: Readonly<Record<string, readonly Exclusion[]>>): string[] {
  return Object.entries(found).flatMap(([file, exclusions]) => {
    const wanted = expected[file] ?? {}
    const excluded = new Map(exclusions.map(({ title, need }) => [title, need]))
    return [
      ...exclusions.filter(({ title, need }) => wanted[title] !== need).map(({ title, need }) => `not listed: ${file}: ${title} (${need})`),
      ...Object.keys(wanted)
        .filter((title) => !excluded.has(title))
        .map((title) => `listed, but it runs or is gone: ${file}: ${title}`),
    ]
  })
}
