import type { AnyFieldTable, Field, ValueReader } from './field.ts'

/** The rows of a document's fields, and a section for every part of it, in Markdown. Pure. */
export function fieldSections(fields: AnyFieldTable): readonly string[] {
  const sections = [tableOf(fields)]
  for (const [name, field] of Object.entries(fields)) addSections(name, field.reader, sections)
  return sections
}

function addSections(path: string, reader: ValueReader<unknown>, sections: string[]): void {
  if (reader.items) addSections(isMap(reader) ? `${path}.NAME` : `${path}[]`, reader.items, sections)
  if (!reader.fields) return
  sections.push(`## ${path}`, tableOf(reader.fields))
  for (const [name, field] of Object.entries(reader.fields)) addSections(`${path}.${name}`, field.reader, sections)
}

function tableOf(fields: AnyFieldTable): string {
  return table(
    ['Field', 'Expects', 'Default', 'Meaning'],
    Object.entries(fields).map(([name, field]) => [`\`${name}\``, expectation(field), defaultOf(field), field.doc]),
  )
}

function expectation({ reader, required }: Field<unknown>): string {
  return required ? `${reader.expects}; required` : reader.expects
}

function defaultOf({ default: value, defaultText }: Field<unknown>): string {
  if (defaultText !== undefined) return defaultText
  return value === undefined || isEmpty(value) ? '' : `\`${JSON.stringify(value)}\``
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}

function isMap(reader: ValueReader<unknown>): boolean {
  return reader.expects.startsWith('an object')
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}
