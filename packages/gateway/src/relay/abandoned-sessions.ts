import { errorMessage } from '@thv/kernel/errors'
import { Fifo } from '@thv/kernel/fifo'
import { HEADERS } from '@thv/mcp/header-names'
import type { Log } from '@thv/telemetry/log'
import type { HttpSession } from '../sessions/session-record.ts'
import type { BackendClient } from './backend-client.ts'

export interface AbandonedOptions {
  /** Undefined while it has no address. */
  readonly backend: () => BackendClient | undefined
  readonly log: Log
  /** Of one DELETE. */
  readonly timeoutMs: number
  /** Ends what is under way and begins nothing more. */
  readonly signal: AbortSignal
}

/** A backend that has thousands to give back must still have room for those who are at work. */
const MAX_AT_ONCE = 4
/** Above this the backend is left to its own time limits. */
const MAX_WAITING = 1_000

/**
 * Ends unused sessions at the backend: their client has gone without a word, and a backend without a limit of its own
 * would keep them. Best effort, a few at a time: what does not work is not tried again. Without the client there are no
 * credentials of it either, so a backend that wants them refuses.
 */
export class AbandonedSessions {
  readonly #options: AbandonedOptions
  readonly #waiting = new Fifo<HttpSession>()
  #underWay = 0

  constructor(options: AbandonedOptions) {
    this.#options = options
  }

  end(session: HttpSession): void {
    if (this.#waiting.size >= MAX_WAITING) {
      this.#options.log.debug('an abandoned session was not ended at the backend: too many are waiting')
      return
    }
    this.#waiting.push(session)
    if (this.#underWay < MAX_AT_ONCE) void this.#work()
  }

  async #work(): Promise<void> {
    this.#underWay++
    for (let next = this.#waiting.shift(); next !== undefined && !this.#options.signal.aborted; next = this.#waiting.shift()) {
      await this.#delete(next.value)
    }
    this.#underWay--
  }

  async #delete({ backendId, version }: HttpSession): Promise<void> {
    const { backend: current, log, timeoutMs, signal } = this.#options
    const backend = current()
    if (backend === undefined) return
    try {
      const set = { [HEADERS.sessionId]: backendId, [HEADERS.protocolVersion]: version }
      const hop = await backend.ownHop()
      const { status } = await backend.ask(hop, { method: 'DELETE', path: backend.ownPath, set, isOwn: true, timeoutMs, signal })
      log.debug('an abandoned session was ended at the backend', { status })
    } catch (error) {
      log.debug('an abandoned session could not be ended at the backend', { error: errorMessage(error) })
    }
  }
}
