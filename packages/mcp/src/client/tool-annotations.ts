import { isObject, type JsonObject } from '../json-rpc.ts'
import { collectAnnotations, type ParamAnnotation, paramHeaders } from '../param-headers.ts'
import { NO_HEADERS } from './link.ts'

/** Tools remembered; the one listed longest ago goes first. */
const MAX_TOOLS = 10_000

/** Which arguments of which tool go into headers too, as far as `tools/list` has told. Modern HTTP only. */
export class ToolAnnotations {
  readonly #byName = new Map<string, readonly ParamAnnotation[]>()
  readonly #onDrop: (text: string) => void

  constructor(onDrop: (text: string) => void) {
    this.#onDrop = onDrop
  }

  /** A `tools/list` result without the tools that must not be called, as their annotations are invalid. */
  learn(result: JsonObject): JsonObject {
    const { tools } = result
    if (!Array.isArray(tools)) return result
    const kept = tools.filter((tool) => this.#learnOne(tool))
    return kept.length === tools.length ? result : { ...result, tools: kept }
  }

  /** For the params of a `tools/call`. */
  headersFor(params: JsonObject): Readonly<Record<string, string>> {
    const annotations = this.of(params)
    return annotations.length === 0 ? NO_HEADERS : paramHeaders(annotations, params['arguments'])
  }

  of(params: JsonObject): readonly ParamAnnotation[] {
    return this.#byName.get(String(params['name'])) ?? []
  }

  #learnOne(tool: unknown): boolean {
    if (!isObject(tool) || typeof tool['name'] !== 'string') return true
    const { name } = tool
    const found = collectAnnotations(tool['inputSchema'])
    this.#byName.delete(name)
    if ('problem' in found) {
      this.#onDrop(`tool ${JSON.stringify(name)} is left out: ${found.problem}`)
      return false
    }
    this.#byName.set(name, found.annotations)
    for (const oldest of this.#byName.keys()) {
      if (this.#byName.size <= MAX_TOOLS) break
      this.#byName.delete(oldest)
    }
    return true
  }
}
