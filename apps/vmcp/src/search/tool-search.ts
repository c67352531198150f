import { setImmediate } from 'node:timers/promises'
import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import type { ParsedMessage, ParsedRequest } from '@thv/mcp/parse-body'
import { errorObjectOf, isRejection, type Rejection, reject } from '@thv/mcp/wire-errors'
import type { Pipeline } from '@thv/middleware/pipeline/pipeline'
import type { MessageContext } from '@thv/middleware/pipeline/request-context'
import { SEARCH_TOOLS, type VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import type { BuiltView } from '../view/built-view.ts'
import type { ViewCache } from '../view/view-cache.ts'
import { innerCall } from './inner-call.ts'
import { searchQuery } from './search-query.ts'
import { buildToolIndex, type ToolIndex } from './tool-index.ts'

export interface ToolSearchOptions {
  readonly view: ViewCache
  readonly pipeline: Pipeline
  config(): VmcpConfig
}

export interface SearchRequest {
  readonly context: MessageContext
  readonly params: JsonObject
  readonly signal: AbortSignal
  /** A definition as clients of this era know it. */
  project(tool: JsonObject): JsonObject
}

/** Tools that policies are asked about for one search. The index gives them best first. */
const MAX_JUDGED = 1_000
const HITS_PER_TURN = 100
const MAX_KEYWORDS = 100
/** Of all definitions together; they are sent twice, as text and as structure. */
const MAX_RESULT_SIZE = 1 << 20
const CHARACTERS_PER_TOKEN = 4

/** Tool search: `find_tool` and `call_tool`, where the configuration asks for them. */
export class ToolSearch {
  readonly #options: ToolSearchOptions
  readonly #indexes = new WeakMap<BuiltView, Promise<ToolIndex>>()
  /** Calls that came through `call_tool`. */
  readonly #inner = new WeakSet<ParsedMessage>()

  constructor(options: ToolSearchOptions) {
    this.#options = options
  }

  get isOn(): boolean {
    return this.#options.config().optimizer !== undefined
  }

  /** One of the two tools. */
  isOwn(name: string): boolean {
    return this.isOn && (name === SEARCH_TOOLS.find || name === SEARCH_TOOLS.call)
  }

  /** The call inside of a `call_tool`; undefined for any other message. */
  unwrap(message: ParsedMessage): ParsedRequest | Rejection | undefined {
    if (!this.isOn) return undefined
    const inner = innerCall(message)
    if (inner !== undefined && !isRejection(inner)) this.#inner.add(inner)
    return inner
  }

  /** The request came through `call_tool`: its headers are about that, not about the tool. */
  isInner(request: ParsedMessage): boolean {
    return this.#inner.has(request)
  }

  isFind(method: string, { name }: JsonObject): boolean {
    return method === METHODS.toolsCall && name === SEARCH_TOOLS.find && this.isOn
  }

  /** A rejected call through `call_tool` as a result: models see results, and can correct themselves. */
  refused(rejection: Rejection): JsonObject {
    return { content: [{ type: 'text', text: errorObjectOf(rejection).message }], isError: true }
  }

  /** Tools for a task that the caller may use. */
  async find({ context, params, signal, project }: SearchRequest): Promise<JsonObject | Rejection> {
    const { view, pipeline, config } = this.#options
    const query = queryOf(params['arguments'])
    if (typeof query !== 'string') return query
    await view.current()
    const index = await this.#indexOf(view.snapshot)
    const { optimizer, incomingAuth, operational } = config()
    const limit = optimizer?.maxToolsToReturn ?? 0
    const maxSize = Math.min(MAX_RESULT_SIZE, Math.floor((operational.toolResults?.maxBytes ?? Number.POSITIVE_INFINITY) / 3))
    const tools: JsonObject[] = []
    const judged = new Set<number>()
    let size = 0
    let omitted = 0
    while (tools.length + omitted < limit && judged.size < MAX_JUDGED) {
      const { hits } = index.search(query, { limit: HITS_PER_TURN, exclude: judged })
      for (const { document } of hits) {
        judged.add(document)
        if (tools.length + omitted >= limit) break
        const item = index.items[document]
        const shown = item && pipeline.item(context, METHODS.toolsList, item)
        if (shown === undefined) continue
        const length = JSON.stringify(shown).length
        if (size + length > maxSize) omitted++
        else {
          size += length
          tools.push(project(shown))
        }
      }
      if (hits.length < HITS_PER_TURN) break
      await setImmediate()
      signal.throwIfAborted()
    }
    // The size of all tools would tell callers about tools that policies hide from them.
    const metrics = incomingAuth.authz?.type === 'cedar' ? {} : { token_metrics: tokenMetrics(index.size, size) }
    const found = { tools, ...(omitted > 0 && { omitted }), ...metrics }
    return { content: [{ type: 'text', text: JSON.stringify(found) }], structuredContent: found }
  }

  #indexOf(built: BuiltView): Promise<ToolIndex> {
    const known = this.#indexes.get(built)
    if (known !== undefined) return known
    const index = buildToolIndex(built).then((made) => {
      this.#options.view.indexed(built, made.bytes)
      return made
    })
    this.#indexes.set(built, index)
    return index
  }
}

function queryOf(args: unknown): string | Rejection {
  const { tool_description: description, tool_keywords: keywords = [] } = isObject(args) ? args : {}
  if (typeof description !== 'string' || description.trim() === '') return invalid('tool_description must be a text')
  const isList = Array.isArray(keywords) && keywords.length <= MAX_KEYWORDS && keywords.every((word) => typeof word === 'string')
  return isList ? searchQuery(description, keywords as string[]) : invalid(`tool_keywords must be a list of at most ${MAX_KEYWORDS} texts`)
}

function invalid(detail: string): Rejection {
  return reject('invalid_params', { detail: `${SEARCH_TOOLS.find}: ${detail}` })
}

function tokenMetrics(all: number, returned: number): JsonObject {
  const baseline = Math.ceil(all / CHARACTERS_PER_TOKEN)
  const sent = Math.ceil(returned / CHARACTERS_PER_TOKEN)
  const saved = baseline === 0 ? 0 : Math.max(0, Math.round((1 - sent / baseline) * 1_000) / 10)
  return { baseline_tokens: baseline, returned_tokens: sent, savings_percent: saved }
}
