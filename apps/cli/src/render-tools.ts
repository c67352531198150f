import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { propertySchema, typeText } from './schema-value.ts'
import { firstSentence, plainText, shortened } from './text/plain-text.ts'

const MAX_DESCRIPTION = 72

/** Tools as a table for people: name, what it does, its arguments; optional ones in brackets. */
export function renderTools(tools: readonly JsonObject[]): string {
  const rows = tools.map((tool) => [plainText(tool['name']), descriptionOf(tool), argumentsOf(tool['inputSchema']).join(' ')])
  return table([['NAME', 'DESCRIPTION', 'ARGUMENTS'], ...rows])
}

/** The arguments of a tool, as they would be typed. */
function argumentsOf(inputSchema: unknown): string[] {
  const schema = isObject(inputSchema) ? inputSchema : {}
  const required = Array.isArray(schema['required']) ? schema['required'] : []
  return Object.entries(isObject(schema['properties']) ? schema['properties'] : {}).map(([name, property]) => {
    const word = plainText(`${name}=${typeText(schema, propertySchema(schema, property))}`)
    return required.includes(name) ? word : `[${word}]`
  })
}

/** The title says what the name does not; a description that only repeats it adds nothing. */
function descriptionOf(tool: JsonObject): string {
  const annotations = isObject(tool['annotations']) ? tool['annotations'] : {}
  const title = plainText(tool['title'] ?? annotations['title'])
  const description = firstSentence(plainText(tool['description']))
  const both = title !== '' && description !== '' && !description.toLowerCase().startsWith(title.toLowerCase())
  return shortened(both ? `${title}: ${description}` : description || title, MAX_DESCRIPTION)
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => [...(row[column] ?? '')].length)))
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - [...cell].length))
      .join('  ')
      .trimEnd(),
  )
  return `${lines.join('\n')}\n`
}
