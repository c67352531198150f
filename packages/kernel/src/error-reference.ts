import { internalErrors, wireErrors } from './error-registry.ts'

/** The whole text of docs/reference/errors.md. Pure, so that a check can compare it with the file. */
export function renderErrorReference(): string {
  const wire = byName(wireErrors).map(([name, e]) => [
    code(name),
    String(e.jsonRpcCode),
    String(e.httpStatus),
    cell(e.text),
    cell(e.meaning),
  ])
  const internal = byName(internalErrors).map(([name, e]) => [code(name), cell(e.meaning)])
  return `${[
    '# Errors',
    '<!-- Generated from packages/kernel/src/error-registry.ts by `npm run generate`. Do not edit. -->',
    'Every error of the project has a code from one registry. There are two families.',
    '## Errors that cross the wire',
    'A client sees the JSON-RPC code, the HTTP status and the text; the cause stays in the log of the server.',
    table(['Name', 'JSON-RPC code', 'HTTP status', 'Text', 'Meaning'], wire),
    '## Errors that stay inside',
    'Seen in logs, in conditions and in what a command prints before it exits.',
    table(['Code', 'Meaning'], internal),
  ].join('\n\n')}\n`
}

function byName<E>(entries: Readonly<Record<string, E>>): [string, E][] {
  return Object.entries(entries).sort(([a], [b]) => (a < b ? -1 : 1))
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

const code = (name: string): string => `\`${name}\``
const cell = (text: string): string => text.replaceAll('|', '\\|')
