import type { Clock } from '@thv/kernel/clock'
import type { HeaderBag } from '@thv/mcp/header-names'
import { isErrorResponse, isObject, type JsonObject, serialise } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import { checkParamHeaders, collectAnnotations, type ParamAnnotation } from '@thv/mcp/param-headers'
import { isRejection, type Rejection } from '@thv/mcp/wire-errors'
import { ownMeta } from '../process/handshake.ts'
import type { ProcessLink } from '../process/process-connection.ts'
import { requestOf } from '../process/request.ts'
import type { StdioConfig } from '../process/stdio-config.ts'

/**
 * Which arguments of which tool must be repeated in `Mcp-Param-*` headers. A stdio server never sees a header, so the runner checks them
 * in its stead, by the server's own list of tools. The list is read again when it may be out of date
 * before anybody is refused because of it.
 */
export class ToolAnnotations {
  readonly #config: StdioConfig
  readonly #clock: Clock
  #link: ProcessLink | undefined
  #tools = new Map<string, readonly ParamAnnotation[]>()
  #loadedAt = Number.NEGATIVE_INFINITY
  #loading: Promise<void> | undefined

  constructor(config: StdioConfig, clock: Clock) {
    this.#config = config
    this.#clock = clock
  }

  /** The problem with the headers of a `tools/call`; a promise only if the list has to be read first. */
  check(link: ProcessLink, params: JsonObject | undefined, headers: HeaderBag): Rejection | undefined | Promise<Rejection | undefined> {
    const name = params?.['name']
    if (typeof name !== 'string') return undefined
    const isKnown = this.#link === link && this.#tools.has(name)
    const fault = isKnown ? this.#fault(name, params, headers) : undefined
    if (isKnown && fault === undefined && this.#age < MAX_AGE_MS) return undefined
    if (this.#link === link && this.#age < MIN_AGE_MS) return fault
    return this.#load(link).then(() => this.#fault(name, params, headers))
  }

  /** The server has said that its tools changed. */
  invalidate(): void {
    this.#loadedAt = Number.NEGATIVE_INFINITY
  }

  get #age(): number {
    return this.#clock.monotonic() - this.#loadedAt
  }

  #fault(name: string, params: JsonObject | undefined, headers: HeaderBag): Rejection | undefined {
    return checkParamHeaders(this.#tools.get(name) ?? [], params?.['arguments'], headers)
  }

  #load(link: ProcessLink): Promise<void> {
    if (this.#loading !== undefined && this.#link === link) return this.#loading
    this.#link = link
    const loading = this.#read(link).then((tools) => {
      if (this.#link !== link) return
      this.#tools = tools
      this.#loadedAt = this.#clock.monotonic()
      this.#loading = undefined
    })
    this.#loading = loading
    return loading
  }

  /** A list that cannot be read to its end holds what could be read: no call is refused on a guess. */
  async #read(link: ProcessLink): Promise<Map<string, readonly ParamAnnotation[]>> {
    const tools = new Map<string, readonly ParamAnnotation[]>()
    let cursor: unknown
    for (let page = 0; page < MAX_PAGES; page++) {
      const params = { ...(typeof cursor === 'string' ? { cursor } : {}), _meta: ownMeta(this.#config) }
      const text = serialise({ jsonrpc: '2.0', id: 0, method: METHODS.toolsList, params })
      const answer = await requestOf(link, text, { idleMs: this.#config.idleTimeoutMs })
      if (isRejection(answer) || isErrorResponse(answer.message) || !isObject(answer.message.result)) break
      const { tools: listed, nextCursor } = answer.message.result
      for (const tool of Array.isArray(listed) ? listed : []) note(tools, tool)
      cursor = nextCursor
      if (typeof cursor !== 'string') break
    }
    return tools
  }
}

/** A tool with an invalid annotation has none: its clients have dropped it, or call it at their own risk. */
function note(tools: Map<string, readonly ParamAnnotation[]>, tool: unknown): void {
  if (!isObject(tool) || typeof tool['name'] !== 'string') return
  const found = collectAnnotations(tool['inputSchema'])
  tools.set(tool['name'], 'annotations' in found ? found.annotations : [])
}

const MIN_AGE_MS = 1_000
const MAX_AGE_MS = 300_000
const MAX_PAGES = 100
