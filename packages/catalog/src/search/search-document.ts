import type { CatalogEntry, EntryStatus, Json, JsonObject } from '../catalog-entry.ts'
import { isJsonObject, member } from '../json-guard.ts'
import { schemaVersionOf } from '../schema-version.ts'
import { publisherProvided } from '../server-document.ts'
import { documentTags } from '../server-extensions.ts'

/** One server, as ranked search sees it. */
export interface SearchDocument {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly tags: readonly string[]
  readonly tools: readonly string[]
  /** Of its packages; `remote` if it has remotes. */
  readonly registryTypes: readonly string[]
  /** Of packages and remotes. */
  readonly transports: readonly string[]
  readonly status: EntryStatus
}

/** Stands among the types of package registries for a server that runs elsewhere. */
export const REMOTE = 'remote'

const MAX_TAGS = 256
const MAX_TOOLS = 1024
const MAX_TYPES = 64

export function searchDocumentOf(entry: Pick<CatalogEntry, 'name' | 'document' | 'status'>): SearchDocument {
  const { title, description } = entry.document
  const tools = extensionBlocks(entry.document).flatMap((block) => [
    ...texts(member(block, 'tools')),
    ...definedTools(member(block, 'tool_definitions')),
  ])
  return {
    name: entry.name,
    title: typeof title === 'string' ? title : '',
    description: typeof description === 'string' ? description : '',
    tags: [...documentTags(entry.document)].slice(0, MAX_TAGS),
    tools: [...new Set(tools)].slice(0, MAX_TOOLS),
    ...waysToReach(entry.document),
    status: entry.status,
  }
}

function waysToReach(document: JsonObject): Pick<SearchDocument, 'registryTypes' | 'transports'> {
  const packages = objects(document['packages'])
  const remotes = objects(document['remotes'])
  const schema = document['$schema']
  const registryType = schemaVersionOf(typeof schema === 'string' ? schema : undefined).version.field('registryType')
  const types = [...packages.map((pack) => member(pack, registryType)), ...(remotes.length > 0 ? [REMOTE] : [])]
  const transports = [...objects(packages.map((pack) => member(pack, 'transport') ?? null)), ...remotes]
  return { registryTypes: distinct(types), transports: distinct(transports.map((transport) => member(transport, 'type'))) }
}

function objects(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

function distinct(values: readonly (Json | undefined)[]): string[] {
  return [...new Set(values.filter((value) => typeof value === 'string'))].slice(0, MAX_TYPES)
}

/** `<any publisher>.<any key>` below publisher-provided. */
function extensionBlocks(document: JsonObject): JsonObject[] {
  const publishers = Object.values(publisherProvided(document) ?? {}).filter(isJsonObject)
  return publishers.flatMap((publisher) => Object.values(publisher).filter(isJsonObject))
}

function texts(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}

function definedTools(value: Json | undefined): string[] {
  return Array.isArray(value) ? texts(value.map((tool: Json) => (isJsonObject(tool) ? (member(tool, 'name') ?? null) : null))) : []
}
