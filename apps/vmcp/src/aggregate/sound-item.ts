import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import type { ItemKind } from './backend-lists.ts'

type Check = (value: unknown) => boolean

const isText: Check = (value) => typeof value === 'string'
const COMMON: readonly (readonly [string, Check])[] = [
  ['title', isText],
  ['description', isText],
  ['icons', Array.isArray],
  ['_meta', isObject],
]

/** Members that an item may do without: they are left out where they are not what MCP says. */
const OPTIONAL: Readonly<Record<ItemKind, readonly (readonly [string, Check])[]>> = {
  tool: [...COMMON, ['outputSchema', isObject], ['annotations', isObject]],
  prompt: [...COMMON, ['arguments', (value) => Array.isArray(value) && value.every(isObject)]],
  resource: [...COMMON, ['mimeType', isText], ['annotations', isObject], ['size', (value) => typeof value === 'number']],
  resourceTemplate: [...COMMON, ['mimeType', isText], ['annotations', isObject]],
}

/**
 * The item as clients can read it, because most refuse a whole list for one item that is malformed: a lying backend must not take the tools of the
 * others away. Undefined: nothing can be made of it.
 */
export function soundItem(kind: ItemKind, item: JsonObject, key: string): JsonObject | undefined {
  let sound = item
  for (const [name, isSound] of OPTIONAL[kind]) {
    if (sound[name] === undefined || isSound(sound[name])) continue
    const { [name]: _, ...rest } = sound
    sound = rest
  }
  if (kind === 'tool') return withInputSchema(sound)
  return typeof sound['name'] === 'string' ? sound : { ...sound, name: key }
}

/** The arguments of a tool are an object; a schema that leaves this out means it. */
function withInputSchema(tool: JsonObject): JsonObject | undefined {
  const { inputSchema: schema = {} } = tool
  if (!isObject(schema)) return undefined
  if (schema['type'] === 'object') return tool
  return schema['type'] === undefined ? { ...tool, inputSchema: { ...schema, type: 'object' } } : undefined
}
