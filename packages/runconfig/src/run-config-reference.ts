import type { AnyFieldTable } from './field.ts'
import { fieldSections, table } from './field-reference.ts'
import { MIDDLEWARE, type MiddlewareRow } from './middleware-table.ts'
import { RUN_CONFIG_FIELDS } from './run-config-fields.ts'

/** The whole text of docs/reference/runconfig.md. Pure: a test compares it with the file. */
export function renderRunConfigReference(): string {
  return `${[
    '# RunConfig',
    '<!-- Generated from packages/runconfig; `npm run generate` writes it. -->',
    INTRODUCTION,
    ...fieldSections(RUN_CONFIG_FIELDS as unknown as AnyFieldTable),
    '## Middleware',
    'In the order in which a request passes them. A RunConfig that asks for middleware that is not built yet is rejected: the runner exits with code 78 and names the field.',
    table(['Middleware', 'Built', 'Fields that ask for it'], MIDDLEWARE.map(middlewareRow)),
  ].join('\n\n')}\n`
}

const INTRODUCTION = `A RunConfig is the JSON document that tells \`thv-proxyrunner\` which MCP server to run and how to stand in front of it. The operator writes
it into a ConfigMap; without a cluster you write it yourself. The runner reads the file given with \`--config\`, else the first that exists of
\`/etc/runconfig/runconfig.json\`, \`/etc/toolhive/runconfig.json\` and \`./runconfig.json\`. Examples are in \`deploy/examples/runconfig\`.

Fields are written in snake_case. Null and empty texts count as absent. Unknown fields are tolerated with a warning; a known field in another
spelling is refused, except where the table says that it may be written otherwise. All problems are reported at once.

When \`THV_RUNCONFIG_CHECKSUM\` is set, the runner waits until the SHA-256 (hex) of the file equals it.`

function middlewareRow({ name, built, fields }: MiddlewareRow): string[] {
  return [name, built ? 'yes' : 'no', fields.length === 0 ? 'always there' : fields.map((field) => `\`${field}\``).join(', ')]
}
