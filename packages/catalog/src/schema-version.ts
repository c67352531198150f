import { quote } from './problems.ts'

export function schemaUrl(id: string): string {
  return `https://static.modelcontextprotocol.io/schemas/${id}/server.schema.json`
}

export const currentSchemaUrl = schemaUrl('2025-12-11')

/** How a document of one schema version is spelled and what it must have. */
export interface SchemaVersion {
  /** A date, or `draft`. */
  readonly id: string
  /** 2025-07-09 wrote `registry_type` where all others write `registryType`. */
  field(name: string): string
  /** Until 2025-10-11 every package named its version. */
  readonly packageVersionRequired: boolean
  /** Since 2025-12-11 a transport's URL begins with http:// or https://; in the draft it may begin with a {template}. */
  readonly urlBegins: 'http' | 'anything' | 'http-or-template'
}

const KNOWN = ['2025-07-09', '2025-09-16', '2025-09-29', '2025-10-11', '2025-10-17', '2025-12-11', 'draft'] as const
const URL_PATTERN = /^https:\/\/static\.modelcontextprotocol\.io\/schemas\/([^/]{1,40})\/server\.schema\.json$/

const currentSchemaVersion: SchemaVersion = schemaVersion('2025-12-11')

/** A document without `$schema`, or with an unknown one, is read by the current rules; the second is also a problem. */
export function schemaVersionOf(url: string | undefined): { readonly version: SchemaVersion; readonly problem?: string } {
  if (url === undefined) return { version: currentSchemaVersion }
  const id = URL_PATTERN.exec(url)?.[1]
  const known = KNOWN.find((candidate) => candidate === id)
  if (known !== undefined) return { version: schemaVersion(known) }
  return { version: currentSchemaVersion, problem: `must be the address of a known server.json schema, not ${quote(url)}` }
}

function schemaVersion(id: (typeof KNOWN)[number]): SchemaVersion {
  return {
    id,
    field: id === '2025-07-09' ? snakeCase : (name) => name,
    packageVersionRequired: id < '2025-10-11',
    urlBegins: id === 'draft' ? 'http-or-template' : id === '2025-12-11' ? 'http' : 'anything',
  }
}

function snakeCase(name: string): string {
  return name.replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
