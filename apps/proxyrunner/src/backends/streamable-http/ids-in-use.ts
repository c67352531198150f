import type { MessageContext } from '@thv/middleware/pipeline/request-context'

/**
 * The ids of requests under way, by session. Servers find the stream of an answer by the id of its request alone, and some take 1 and "1"
 * for the same: of two requests with one id, the list that answers one of them could come as the answer to the other, and unfiltered.
 */
export class IdsInUse {
  readonly #keys = new Set<string>()

  /** The key to release in the end; undefined: the id is in use. */
  claim({ caller, sessionId, received }: MessageContext): string | undefined {
    const key = `${caller.principal} ${sessionId} ${received.id}`
    if (this.#keys.has(key)) return undefined
    this.#keys.add(key)
    return key
  }

  release(key: string): void {
    this.#keys.delete(key)
  }
}
