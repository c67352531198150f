import type { CatalogEntry, Json, JsonObject } from '../catalog-entry.ts'
import { isJsonObject, member } from '../json-guard.ts'
import { publisherProvided } from '../server-document.ts'
import { documentTags } from '../server-extensions.ts'

/** What ranked search knows of one server. */
export interface SearchDocument {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly tags: readonly string[]
  readonly tools: readonly string[]
}

const MAX_TAGS = 256
const MAX_TOOLS = 1024

export function searchDocumentOf(entry: Pick<CatalogEntry, 'name' | 'document'>): SearchDocument {
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
  }
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
