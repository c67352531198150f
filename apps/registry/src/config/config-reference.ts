import type { Schema } from './check-shape.ts'
import { CONFIG_SHAPE } from './config-schema.ts'
import { overrideVariables } from './env-overrides.ts'
import { UNOFFERED_KEYS } from './unoffered-keys.ts'

/** The whole text of docs/reference/registry-config.md. Pure: a test compares it with the file. */
export function renderConfigReference(): string {
  const { properties = {} } = CONFIG_SHAPE
  const { sources, registries, ...blocks } = properties
  return `${[
    '# Configuration of the registry server',
    '<!-- Generated from apps/registry/src/config by "npm run generate". Do not edit. -->',
    INTRODUCTION,
    '## All keys',
    table(
      ['Key', 'Is', 'Default', 'Meaning'],
      Object.entries(properties).map(([key, schema]) => row(key, schema, CONFIG_SHAPE)),
    ),
    '## `sources[]`',
    sources?.items?.description ?? '',
    blockTable('sources[]', sources?.items ?? {}),
    '## `registries[]`',
    registries?.items?.description ?? '',
    'The long form has `name`, `sources` and `claims`. In the short form an element has no `sources` but the keys of a source, and means a source and a registry of the same name. A file uses one of the two forms.',
    blockTable('registries[]', pick(registries?.items ?? {}, ['name', 'sources', 'claims'])),
    ...Object.entries(blocks).flatMap(([key, schema]) =>
      schema.type === 'object' ? [`## \`${key}\``, schema.description ?? '', blockTable(key, schema)] : [],
    ),
    '## Variables',
    VARIABLES,
    '## Keys that are refused',
    'They are known from other releases or from the design documents. The error for each says what to do instead; no key is silently ignored.',
    table(
      ['Key', 'State', 'Instead'],
      UNOFFERED_KEYS.map(({ path, state, advice }) => [`\`${path}\``, state === 'later' ? 'not built yet' : 'not offered', advice]),
    ),
    'All other keys of this page are built. Of the commands of ToolHive (Go) `prime-db` is not offered: `migrate up` makes the role and its rights.',
  ].join('\n\n')}\n`
}

const INTRODUCTION = `\`thv-registry-api serve --config FILE\` reads one YAML file. \`thv-registry-api validate --config FILE\` looks at it without starting anything and
prints every problem as \`file:line:column: key: what is wrong\`. Files to begin with are in \`deploy/examples/registry\`;
[Run the registry](../how-to/run-the-registry.md) and [Sources](../how-to/registry-sources.md) show them at work.

Unknown keys are refused. The case of keys and of claims counts. Durations are written as in Go: \`30s\`, \`15m\`, \`1h30m\`. Relative paths of file
sources and of the embedded store begin at the folder of the file.

The file is read again when it changes, also when Kubernetes swaps a mounted ConfigMap, and on SIGHUP. A good file takes the place of the old
one without a failing request; a bad one is refused and logged with its problems, and the old one stays in force. Another store needs
a restart, and so do addresses, which are flags.

Without \`--config\` the server listens on 127.0.0.1 alone, lets everyone read and callers with the token in \`write-token\` of the data folder
publish, keeps its data in the data folder, and serves the bundled
catalog together with a managed source as registry \`default\`.`

const VARIABLES = `\`\${NAME}\` in a value stands for a variable of the environment, \`\${NAME:-otherwise}\` gives another value when it is not set or empty, and \`$\${\`
stands for \`\${\`. What comes in stays one value, whatever is in it; in a key of a number or switch it is read as one. Inside of \`{ }\` and \`[ ]\`
such a value needs quotes. Values of variables are never printed.

The variable in the last column of the tables wins over the file, whether the key stands there or not. Further ones:

| Variable | Meaning |
|---|---|
| \`THV_REGISTRY_ADDRESS\`, \`THV_REGISTRY_INTERNAL_ADDRESS\`, \`THV_REGISTRY_DATA_DIR\` | as the flags of \`serve\`, which win |
| \`THV_REGISTRY_INSECURE_URL\` | \`true\` allows identity providers with http |
| \`THV_REGISTRY_COMPRESS_RESPONSE\` | another name for \`THV_REGISTRY_HTTP_COMPRESSION\` |
| \`THV_REGISTRY_STOP_DELAY\` | how long requests are still taken when the process is to end, at most 15s (0s) |
| \`THV_REGISTRY_LOG_LEVEL\`, then \`LOG_LEVEL\` | \`debug\`, \`info\`, \`warn\` or \`error\` |
| \`PGPASSFILE\` | passwords of PostgreSQL |`

function blockTable(path: string, schema: Schema): string {
  const variables = overrideVariables(CONFIG_SHAPE)
  const rows: string[][] = []
  for (const [key, below, parent] of leaves(schema, path)) {
    const variable = variables.get(key)
    rows.push([...row(key.slice(path.length + 1), below, parent), ...(path.includes('[]') ? [] : [variable ? `\`${variable}\`` : ''])])
  }
  return table(['Key', 'Is', 'Default', 'Meaning', ...(path.includes('[]') ? [] : ['Variable'])], rows)
}

/** Everything below, blocks before what is in them. */
function* leaves(schema: Schema, path: string): Generator<[string, Schema, Schema]> {
  for (const [key, below] of Object.entries(schema.properties ?? {})) {
    const here = `${path}.${key}`
    yield [here, below, schema]
    const items = below.type === 'array' ? below.items : below
    if (items?.properties) yield* leaves(items, items === below ? here : `${here}[]`)
  }
}

function row(key: string, schema: Schema, parent: Schema): string[] {
  const name = key.split('.').at(-1) ?? key
  const required = parent.required?.includes(name) === true && schema.default === undefined
  return [`\`${key}\``, kindOf(schema) + (required ? '; required' : ''), defaultOf(schema), schema.description ?? '']
}

function kindOf(schema: Schema): string {
  const words = schema.anyOf?.map((option) => option.const).filter((word) => typeof word === 'string') ?? []
  if (words.length > 0) return words.map((word) => `\`${word}\``).join(', ')
  if (schema.anyOf) return 'a text or a list of texts'
  if (schema.patternProperties) return `names to ${kindOf(Object.values(schema.patternProperties)[0] ?? {})}`
  if (schema.format === 'go-duration') return `a duration${durationRange(schema)}`
  if (schema.type === 'integer') return `a whole number${range(schema)}`
  if (schema.type === 'number') return `a number${range(schema)}`
  if (schema.type === 'boolean') return 'true or false'
  if (schema.type === 'array') return schema.items?.properties ? 'a list' : `a list, each ${kindOf(schema.items ?? {})}`
  return schema.type === 'object' ? 'a block' : 'a text'
}

function range({ minimum, maximum }: Schema): string {
  if (minimum === undefined) return ''
  return maximum === undefined ? ` of at least ${minimum}` : ` from ${minimum} to ${maximum}`
}

function durationRange({ minDuration, maxDuration }: Schema): string {
  return minDuration === undefined || maxDuration === undefined ? '' : ` from ${minDuration} to ${maxDuration}`
}

function defaultOf(schema: Schema): string {
  if (schema.default === undefined || schema.type === 'object') return ''
  return `\`${typeof schema.default === 'string' ? schema.default : JSON.stringify(schema.default)}\``
}

function pick(schema: Schema, keys: readonly string[]): Schema {
  const properties = Object.fromEntries(Object.entries(schema.properties ?? {}).filter(([key]) => keys.includes(key)))
  return { ...schema, properties }
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}
