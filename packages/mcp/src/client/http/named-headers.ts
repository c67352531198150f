import { HEADERS } from '../../header-names.ts'
import { encodeHeaderValue } from '../../header-value.ts'
import { METHODS } from '../../methods.ts'
import type { Headers } from './http-endpoint.ts'

const MAX_KNOWN = 1_000
const MAX_KNOWN_LENGTH = 128

/**
 * The headers that repeat method and name of a modern request, with those that all requests have. Calls of one tool have the same object, which an endpoint
 * flattens only once.
 */
export class NamedHeaders {
  readonly #common: Headers
  readonly #ofTools = new Map<string, Headers>()

  constructor(common: Headers) {
    this.#common = common
  }

  of(method: string, name: string | undefined): Headers {
    const isKept = method === METHODS.toolsCall && name !== undefined && name.length <= MAX_KNOWN_LENGTH
    if (!isKept) return this.#make(method, name)
    const known = this.#ofTools.get(name)
    if (known !== undefined) return known
    const headers = this.#make(method, name)
    if (this.#ofTools.size >= MAX_KNOWN) this.#ofTools.clear()
    this.#ofTools.set(name, headers)
    return headers
  }

  #make(method: string, name: string | undefined): Headers {
    const headers = { ...this.#common, [HEADERS.method]: method }
    return name === undefined ? headers : { ...headers, [HEADERS.name]: encodeHeaderValue(name) }
  }
}
