import { META, stampResult, stripHopKeys } from '../envelope.ts'
import { type ErrorObject, isObject, type JsonObject } from '../json-rpc.ts'
import { CACHEABLE_METHODS, METHODS } from '../methods.ts'

/** A result for a legacy client: nothing in it that only modern clients know. */
export function legacyResult(result: JsonObject): JsonObject {
  const { resultType: _, ttlMs: _ttl, cacheScope: _scope, _meta: meta, structuredContent, ...rest } = result
  const kept = isObject(meta) ? stripHopKeys(meta) : {}
  return {
    ...rest,
    ...(structuredContent !== undefined && legacyStructure(structuredContent, rest['content'])),
    ...(Object.keys(kept).length > 0 && { _meta: kept }),
  }
}

/** Structured content of a legacy result is an object. What is none goes into a member, and into a text for older clients. */
function legacyStructure(value: unknown, content: unknown): JsonObject {
  if (isObject(value)) return { structuredContent: value }
  const blocks: readonly unknown[] = Array.isArray(content) ? content : []
  const hasText = blocks.some((block) => isObject(block) && block['type'] === 'text')
  const text = { type: 'text', text: JSON.stringify(value) }
  return { structuredContent: { result: value }, content: hasText ? blocks : [...blocks, text] }
}

/** The list item of a tool for a legacy client, which knows output schemas of objects only. */
export function legacyTool(tool: JsonObject): JsonObject {
  const schema = tool['outputSchema']
  if (!isObject(schema) || schema['type'] === 'object') return tool
  const wrapped = { type: 'object', properties: { result: rerooted(schema) }, required: ['result'] }
  return { ...tool, outputSchema: wrapped }
}

/** Local references keep their meaning one level deeper. */
function rerooted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(rerooted)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) =>
      key === '$ref' && typeof member === 'string' && member.startsWith('#')
        ? [key, `#/properties/result${member.slice(1)}`]
        : [key, rerooted(member)],
    ),
  )
}

export interface ModernStamp {
  readonly method: string
  readonly serverInfo: JsonObject
  /** The result comes from a legacy backend. */
  readonly isLegacy: boolean
}

/** A result for a modern client, under the name of the virtual server. */
export function modernResult(result: JsonObject, { method, serverInfo, isLegacy }: ModernStamp): JsonObject {
  const { resultType } = result
  const type = isLegacy || typeof resultType !== 'string' ? 'complete' : resultType
  const isCacheable = type === 'complete' && CACHEABLE_METHODS.has(method)
  const cache = isCacheable ? { ttlMs: 0, cacheScope: 'private', ...(isLegacy ? {} : cacheOf(result)) } : {}
  return { ...stampResult(result, serverInfo), ...cache, resultType: type }
}

/** A copy for all would be a copy for callers whom no policy has let through. */
function cacheOf({ ttlMs }: JsonObject): JsonObject {
  return typeof ttlMs === 'number' && ttlMs >= 0 ? { ttlMs, cacheScope: 'private' } : {}
}

const NOT_FOUND_LEGACY = -32002
const INVALID_PARAMS = -32602
/** The user has to open links first: `linkQuestions` makes questions of it, where it can. */
const LINKS_FIRST_LEGACY = -32042

/** An error of a backend for a legacy client. Codes that it cannot know do not get through. */
export function legacyError(error: ErrorObject, method: string): ErrorObject {
  const { code, data } = error
  if (code === INVALID_PARAMS && method === METHODS.resourcesRead && isObject(data) && 'uri' in data)
    return { ...error, code: NOT_FOUND_LEGACY }
  return code >= -32099 && code <= -32020 ? foreign(error) : error
}

/** The result of a tool in place of an error about the modern wire, which says nothing to a legacy client. Undefined for all other errors. */
export function legacyRefusal({ code, message, data }: ErrorObject, method: string): JsonObject | undefined {
  if (method !== METHODS.toolsCall || code < -32022 || code > -32020) return undefined
  const required = isObject(data) ? data['requiredCapabilities'] : undefined
  const text = isObject(required) ? `The tool needs a client that declares ${JSON.stringify(required)}` : message
  return { content: [{ type: 'text', text }], isError: true }
}

/** An error of a legacy backend for a modern client, which must not interpret the codes from -32000 to -32019, and knows no error about links. */
export function modernError(error: ErrorObject): ErrorObject {
  const { code } = error
  if (code === NOT_FOUND_LEGACY) return { ...error, code: INVALID_PARAMS }
  return (code >= -32019 && code <= -32000) || code === LINKS_FIRST_LEGACY ? foreign(error) : error
}

function foreign({ code, message }: ErrorObject): ErrorObject {
  return { code: -32603, message, data: { upstreamCode: code } }
}

/** Capabilities of a client that are passed on to backends: those that the virtual server can serve. */
export function relayedCapabilities(declared: unknown): JsonObject {
  if (!isObject(declared)) return {}
  const { sampling, elicitation, roots } = declared
  return { ...(isObject(sampling) && { sampling }), ...(isObject(elicitation) && { elicitation }), ...(isObject(roots) && { roots }) }
}

/** Whether a client with these capabilities can be asked with a form. One that names no mode means forms. */
export function fillsForms({ elicitation }: JsonObject): boolean {
  return isObject(elicitation) && (elicitation['form'] !== undefined || elicitation['url'] === undefined)
}

/** `_meta` of a message that belongs to a subscription. */
export function subscriptionMeta(id: string | number): JsonObject {
  return { [META.subscriptionId]: id }
}
