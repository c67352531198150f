import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { REQUIREMENTS } from './all.ts'
import { idsIn } from './citations.ts'
import { type Proof, proofOf } from './proof.ts'

/*
 * The proofs of docs/features.md, read from the sources of the tests so that the page can be generated without running them. The end of
 * `npm test` compares them with the tests that ran.
 */

/** Tables of ids without brackets, and the test that puts them into its titles. */
const TABLES: Readonly<Record<string, string>> = {
  'test/e2e/stories/': 'test/e2e/operator-stories.node.test.ts',
  'test/fixtures/seeds/requirements.ts': 'test/seed-manifests.cluster.test.ts',
}

/** Row id → proofs of the tests that cite it. */
export function citedInSources(root: string): Map<string, Set<Proof>> {
  const known = new Set<string>(REQUIREMENTS.flatMap(({ rows }) => rows.map((row) => row.id)))
  const cited = new Map<string, Set<Proof>>()
  for (const path of ['packages', 'apps', 'test', 'scripts'].flatMap((area) => sourcesIn(root, area))) {
    const table = Object.keys(TABLES).find((start) => path.startsWith(start))
    if (!table && !path.endsWith('.test.ts')) continue
    const text = readFileSync(join(root, path), 'utf8')
    const ids = table ? [...text.matchAll(/'(\d{3}-\d{3})'/g)].map((match) => match[1] ?? '') : idsIn(text)
    const proof = proofOf((table && TABLES[table]) ?? path)
    for (const id of ids.filter((each) => known.has(each))) cited.set(id, (cited.get(id) ?? new Set()).add(proof))
  }
  return cited
}

function sourcesIn(root: string, area: string): string[] {
  return readdirSync(join(root, area), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.parentPath.includes('node_modules'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'))
}
