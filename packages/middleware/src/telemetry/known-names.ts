import type { JsonObject } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import type { RequestContext } from '../pipeline/request-context.ts'

const MAX_NAMES = 1_000
export const OTHER = 'other'

/**
 * The names of tools and prompts that a list through this proxy has shown. Only these become labels and span names: a client must not be
 * able to make up new ones.
 */
export class KnownNames {
  readonly #tools = new Set<string>()
  readonly #prompts = new Set<string>()

  /** Of an item of a list of this method. */
  note(method: string, { name }: JsonObject): void {
    const names = method === METHODS.toolsList ? this.#tools : method === METHODS.promptsList ? this.#prompts : undefined
    if (typeof name === 'string' && names !== undefined && names.size < MAX_NAMES) names.add(name)
  }

  /** The tool of a call or the prompt of a get; `other` when no list has named it, undefined when the method names neither. */
  of({ received }: RequestContext): string | undefined {
    const isTool = received?.method === METHODS.toolsCall
    if (received === undefined || received.kind === 'response' || (!isTool && received.method !== METHODS.promptsGet)) return undefined
    const name = received.message.params?.['name']
    return typeof name === 'string' && (isTool ? this.#tools : this.#prompts).has(name) ? name : OTHER
  }
}
