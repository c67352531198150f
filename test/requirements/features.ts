import { type DocumentRequirements, REQUIREMENTS } from './all.ts'
import type { Requirement } from './requirement.ts'

/** `docs/features.md`: what the design documents ask for, and how far it is. */
export function renderFeatures(): string {
  const parts = [
    '# Features',
    '',
    'Generated from `test/requirements` by `npm run generate`. Do not edit.',
    '',
    'Every requirement of the five design documents. **met**: a passing test carries its id in the title, such as `[003-014]`.',
    '**planned**: not there yet, or not proven. **declined**: left out on purpose; the linked decision says why.',
    '',
    '| document | requirements | met | planned | declined |',
    '|---|---:|---:|---:|---:|',
    ...REQUIREMENTS.map((document) => summary(`${document.document} ${document.title}`, document.rows)),
    summary(
      '**all**',
      REQUIREMENTS.flatMap((document) => document.rows),
    ),
    '',
    ...REQUIREMENTS.flatMap(table),
  ]
  return `${parts.join('\n').trimEnd()}\n`
}

function summary(name: string, rows: readonly Requirement[]): string {
  const count = (state: Requirement['state']) => rows.filter((row) => row.state === state).length
  return `| ${name} | ${rows.length} | ${count('met')} | ${count('planned')} | ${count('declined')} |`
}

function table({ document, title, rows }: DocumentRequirements): string[] {
  return [
    `## ${document} ${title}`,
    '',
    '| id | section (line) | requirement | kind | state |',
    '|---|---|---|---|---|',
    ...rows.map((row) => `| ${row.id} | ${escaped(row.section)} (${row.line}) | ${escaped(row.text)} | ${row.kind} | ${stateOf(row)} |`),
    '',
  ]
}

function stateOf(row: Requirement): string {
  return row.adr ? `[${row.state}](adr/${row.adr})` : row.state
}

function escaped(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('{{', '\\{\\{')
}
