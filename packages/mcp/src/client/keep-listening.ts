import { createBackoff } from '@thv/kernel/backoff'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import { type ClientContext, tell } from './client-context.ts'
import { McpErrorResponse } from './client-errors.ts'
import type { EngineListening } from './engine.ts'
import type { Listening } from './mcp-client.ts'

export interface KeepListening {
  readonly first: EngineListening
  reopen(signal: AbortSignal): Promise<EngineListening>
  readonly onGap: (() => void) | undefined
  readonly context: ClientContext
  /** The whole client ends. */
  readonly closing: AbortSignal
}

/** Opens a listen stream again and again, with back-off, until it is closed or the server refuses it. */
export function keepListening({ first, reopen, onGap, context, closing }: KeepListening): Listening {
  const own = new AbortController()
  const signal = AbortSignal.any([own.signal, closing])
  const backoff = createBackoff({ baseMs: 500, maxMs: 60_000 })
  let current = first

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await untilOver(current)
      if (!signal.aborted) await open()
    }
  }

  async function untilOver(listening: EngineListening): Promise<void> {
    try {
      await listening.ended
    } catch (error) {
      if (isRefusal(error) && !signal.aborted) throw error
      if (!signal.aborted) context.warn(`a listen stream broke off: ${errorMessage(error)}`)
    }
  }

  async function open(): Promise<void> {
    try {
      await context.clock.sleep(backoff.next(), signal)
      current = await reopen(signal)
      backoff.reset()
      tell(context, onGap, undefined)
    } catch (error) {
      if (isRefusal(error)) throw error
      if (signal.aborted) return
      context.warn(`a listen stream could not be opened again: ${errorMessage(error)}`)
      return open()
    }
  }

  const done = run()
  done.catch(() => {}) // handled by its listener, if it has one
  const close = async () => {
    own.abort()
    await current.close()
  }
  return { honoured: first.honoured, done, close, [Symbol.asyncDispose]: close }
}

/** The server said no, which it will say again. */
function isRefusal(error: unknown): boolean {
  return error instanceof McpErrorResponse || isThvError(error, 'mcp_auth_required')
}
