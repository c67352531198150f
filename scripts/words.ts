import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './run.ts'

/*
 * Phrases that make a text hard to read, and references to documents that are not in the repository. `words-allowed.json` holds how many
 * each file still has: a file may have fewer, never more. `node scripts/words.ts --update` lowers the numbers; it refuses to raise their sum.
 */

interface Phrase {
  readonly pattern: RegExp
  readonly instead: string
}

const PHRASES: readonly Phrase[] = [
  {
    pattern: /(?<=^|[\s.])\([A-Z]\d{1,2}(?:, ?[A-Z]\d{1,2})*\)/,
    instead: 'cite a section of a public standard or an ADR instead of a rule code',
  },
  { pattern: /\bdecisions? \d+/i, instead: 'cite an ADR of docs/adr' },
  { pattern: /\bmodern ladder\b|\bspec\/[a-z-]+\.md\b/, instead: 'cite a section of a public standard or an ADR' },
  { pattern: /\banew\b/, instead: 'write "again", "new" or name what is replaced' },
  { pattern: /\bfor ever\b/, instead: 'write "forever", or name the limit that is missing' },
  { pattern: /\b(?:is|are|was|were|be) had\b/, instead: 'say where it comes from' },
  { pattern: /\bbelongs? into\b/, instead: 'write "belongs in" or "goes into"' },
  { pattern: /\b(?:is|are|was|were|be|been|gets?) told\b/, instead: 'say who receives what: "receives", "is notified", "reports"' },
  { pattern: /\bthe original(?:'s)?\b/i, instead: 'write "ToolHive (Go)"' },
  { pattern: /\bwhoever\b/i, instead: 'name the subject: the caller, the client, the user' },
  // Quoted by itself it is a name in data.
  { pattern: /(?<!['"])\bnobody\b|\bnobody\b(?!['"])/i, instead: 'name the subject, with a plain negation' },
  { pattern: /(?:\/\*\*?|\/\/|^ ?\*) (?:What|Who|Whose)\b/, instead: 'begin the comment with its noun' },
  { pattern: /\b(?:it|test|describe)(?:\.\w+)*\(\s*['`](?:what|who|whose)\b/i, instead: 'a test title states a fact about its subject' },
]

/** Files whose words are not ours to choose, or are written from other files. */
const LEFT_OUT =
  /^(CHANGELOG\.md|scripts\/words(\.test)?\.ts|docs\/features\.md|docs\/reference\/|deploy\/(crds|manifests)\/)|\/recordings\/|\.golden\.|\.generated\./
const READ = /\.(ts|mts|mjs|md|yaml|tpl)$/
const ALLOWED_FILE = 'scripts/words-allowed.json'
const SHOWN = 5

export interface Finding {
  readonly line: number
  readonly phrase: string
  readonly instead: string
}

export function findingsIn(text: string): Finding[] {
  return text.split('\n').flatMap((content, index) =>
    PHRASES.flatMap(({ pattern, instead }) =>
      [...content.matchAll(new RegExp(pattern, `${pattern.flags}g`))].map(([phrase]) => ({
        line: index + 1,
        phrase: phrase.trim(),
        instead,
      })),
    ),
  )
}

/** Compares the findings with what is allowed. Returns what is wrong, with what to do. */
export function judgeWords(found: ReadonlyMap<string, readonly Finding[]>, allowed: Readonly<Record<string, number>>): string[] {
  const problems: string[] = []
  for (const [file, findings] of found) {
    const limit = allowed[file] ?? 0
    if (findings.length <= limit) continue
    problems.push(`${file} has ${findings.length} phrases to rewrite, ${limit} are allowed (${ALLOWED_FILE}):`)
    problems.push(...findings.slice(0, SHOWN).map(({ line, phrase, instead }) => `  ${file}:${line}: "${phrase}": ${instead}`))
    if (findings.length > SHOWN) problems.push(`  and ${findings.length - SHOWN} more`)
  }
  if (problems.length > 0)
    problems.push('Rewrite the new ones in plain English. If a file was only moved, run "node scripts/words.ts --update".')
  return problems
}

export function checkWords(root: string): string[] {
  return judgeWords(findingsBelow(root), allowedNow(root))
}

function findingsBelow(root: string): Map<string, Finding[]> {
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: root, encoding: 'utf8' })
  const found = new Map<string, Finding[]>()
  for (const file of listed.split('\0').filter((each) => READ.test(each) && !LEFT_OUT.test(each))) {
    const findings = findingsIn(readIfThere(join(root, file)))
    if (findings.length > 0) found.set(file, findings)
  }
  return found
}

function allowedNow(root: string): Record<string, number> {
  return JSON.parse(readIfThere(join(root, ALLOWED_FILE)) || '{}') as Record<string, number>
}

/** A file that is deleted but not yet committed as such has no text. */
function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}

if (import.meta.main) {
  const found = findingsBelow(ROOT)
  const sum = (counts: Iterable<number>) => [...counts].reduce((total, each) => total + each, 0)
  const counts = Object.fromEntries(
    [...found].map(([file, findings]) => [file, findings.length] as const).toSorted(([a], [b]) => (a < b ? -1 : 1)),
  )
  const [now, before] = [sum(Object.values(counts)), sum(Object.values(allowedNow(ROOT)))]
  if (process.argv[2] !== '--update') {
    const area = process.argv[2] ?? ''
    for (const [file, findings] of found)
      if (file.startsWith(area)) for (const { line, phrase, instead } of findings) console.log(`${file}:${line}: "${phrase}": ${instead}`)
    console.log(`${now} phrases, ${before} allowed`)
  } else if (before > 0 && now > before) {
    console.error(`${now} phrases are more than the ${before} of ${ALLOWED_FILE}: rewrite the new ones`)
    process.exitCode = 1
  } else writeFileSync(join(ROOT, ALLOWED_FILE), `${JSON.stringify(counts, null, 2)}\n`)
}
