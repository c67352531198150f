import { type DocumentRequirements, REQUIREMENTS } from './all.ts'
import { type Proof, sorted } from './proof.ts'
import { type Requirement, type Subject, subjectOf } from './requirement.ts'
import { citedInSources } from './source-citations.ts'

const SUBJECTS: readonly Subject[] = ['behavior', 'shape', 'docs']

/** `docs/features.md`: what the design documents ask for, how far it is, and how it is proven. */
export function renderFeatures(root: string): string {
  const proofs = citedInSources(root)
  const parts = [
    '# Features',
    '',
    'Generated from `test/requirements` by `npm run generate`. Do not edit.',
    '',
    'Every requirement of the five design documents. **met**: a passing test carries its id in the title, such as `[003-014]`.',
    '**planned**: not there yet, or not proven. **declined**: left out on purpose; the linked decision says why.',
    '',
    'A requirement is about **behavior** (the system does something), **shape** (fields, values, defaults, what admission rejects) or **docs**',
    '(pages, decision records, examples). Its proof is where the tests that cite it run: `e2e` (the whole system, on a node or on the local',
    'platform), `cluster` (a real control plane), `process` (a program as a process), `unit`, `admission` (an API server accepts or rejects a',
    'manifest), `schema` (the schemas of the resources), `docs`. `admission` and `schema` prove no behavior.',
    '',
    `| document | requirements | ${SUBJECTS.map((subject) => `${subject}: met of all`).join(' | ')} | met | planned | declined |`,
    `|---|---:|${SUBJECTS.map(() => '---:|').join('')}---:|---:|---:|`,
    ...REQUIREMENTS.map((document) => summary(`${document.document} ${document.title}`, document.rows)),
    summary(
      '**all**',
      REQUIREMENTS.flatMap((document) => document.rows),
    ),
    '',
    ...REQUIREMENTS.flatMap((document) => table(document, proofs)),
  ]
  return `${parts.join('\n').trimEnd()}\n`
}

function summary(name: string, rows: readonly Requirement[]): string {
  const count = (state: Requirement['state'], among = rows) => among.filter((row) => row.state === state).length
  const bySubject = SUBJECTS.map((subject) => {
    const among = rows.filter((row) => subjectOf(row) === subject)
    return `${count('met', among)} of ${among.length}`
  })
  return `| ${name} | ${rows.length} | ${bySubject.join(' | ')} | ${count('met')} | ${count('planned')} | ${count('declined')} |`
}

function table({ document, title, rows }: DocumentRequirements, proofs: ReadonlyMap<string, ReadonlySet<Proof>>): string[] {
  return [
    `## ${document} ${title}`,
    '',
    '| id | section (line) | requirement | kind | about | state | proof |',
    '|---|---|---|---|---|---|---|',
    ...rows
      .toSorted((a, b) => a.line - b.line)
      .map((row) => {
        const proof = row.state === 'met' ? sorted(proofs.get(row.id) ?? []).join(', ') : ''
        const where = `${row.id} | ${escaped(row.section)} (${row.line})`
        return `| ${where} | ${escaped(row.text)} | ${row.kind} | ${subjectOf(row)} | ${stateOf(row)} | ${proof} |`
      }),
    '',
  ]
}

function stateOf(row: Requirement): string {
  return row.adr ? `[${row.state}](adr/${row.adr})` : row.state
}

function escaped(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('{{', '\\{\\{')
}
