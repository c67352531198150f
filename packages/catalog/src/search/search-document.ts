import type { CatalogEntry, Json, JsonObject } from '../catalog-entry.ts'

/** What ranked search knows of one server. */
export interface SearchDocument {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly tags: readonly string[]
  readonly tools: readonly string[]
}

const PUBLISHER_PROVIDED = 'io.modelcontextprotocol.registry/publisher-provided'
const MAX_TAGS = 256
const MAX_TOOLS = 1024

export function searchDocumentOf(entry: CatalogEntry): SearchDocument {
  const { title, description } = entry.document
  const blocks = extensionBlocks(entry.document)
  const tools = blocks.flatMap((block) => [...texts(block['tools']), ...definedTools(block['tool_definitions'])])
  return {
    name: entry.name,
    title: typeof title === 'string' ? title : '',
    description: typeof description === 'string' ? description : '',
    tags: [...new Set(blocks.flatMap((block) => texts(block['tags'])))].slice(0, MAX_TAGS),
    tools: [...new Set(tools)].slice(0, MAX_TOOLS),
  }
}

/** `<any publisher>.<any key>` below publisher-provided. */
function extensionBlocks(document: JsonObject): JsonObject[] {
  const publishers = member(member(document, '_meta'), PUBLISHER_PROVIDED)
  return objects(publishers).flatMap((publisher) => objects(publisher))
}

function member(value: Json | undefined, name: string): Json | undefined {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

function objects(value: Json | undefined): JsonObject[] {
  return isObject(value) ? Object.values(value).filter(isObject) : []
}

function texts(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}

function definedTools(value: Json | undefined): string[] {
  return Array.isArray(value) ? texts(value.map((tool: Json) => member(tool, 'name') ?? null)) : []
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
