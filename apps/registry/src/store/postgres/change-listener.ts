import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { linkSignals } from '@thv/kernel/lifecycle'
import type { Logger } from '@thv/telemetry/log'
import { Client, type ClientConfig } from 'pg'
import { storeMessage } from './store-error.ts'

/** Sent by every transaction that changes what others want to know; listeners then look for themselves. */
export const CHANNEL = 'thv_registry'

export interface ChangeListener {
  onChange(listener: () => void): () => void
  close(): Promise<void>
}

export interface ListenerOptions {
  /** Asked before each connect. */
  readonly connection: () => ClientConfig
  readonly clock: Clock
  readonly log: Logger
}

/** How often the connection must prove that it is alive: a silent network shows no other sign. */
const PROOF_MS = 20_000
const PROOF_LIMIT_MS = 5000

/** One connection that does nothing but listen. Listeners are called after each connect too, since a change may have been missed. */
export function listenForChanges({ connection, clock, log }: ListenerOptions): ChangeListener {
  const stop = new AbortController()
  const listeners = new Set<() => void>()
  const tell = () => {
    for (const listener of [...listeners]) listener()
  }
  const run = async () => {
    const backoff = createBackoff({ baseMs: 100, maxMs: 5000 })
    const connected = () => {
      if (backoff.failures > 0) log.info('notifications from PostgreSQL come again')
      backoff.reset()
      tell()
    }
    while (!stop.signal.aborted) {
      const error = await listenUntilLost({ connection: connection(), clock, signal: stop.signal, connected, tell })
      if (stop.signal.aborted) return
      const delay = backoff.next()
      // Once is enough while it lasts.
      log[backoff.failures === 1 ? 'warn' : 'debug']('no notifications from PostgreSQL; trying again', { error: storeMessage(error) })
      await clock.sleep(delay, stop.signal).catch(() => {}) // the loop sees the end itself
    }
  }
  const running = run()
  return {
    onChange: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close: async () => {
      listeners.clear()
      stop.abort()
      await running
    },
  }
}

interface Session {
  readonly connection: ClientConfig
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly connected: () => void
  readonly tell: () => void
}

/** Gives the reason for which the connection ended or never was. */
async function listenUntilLost({ connection, clock, signal, connected, tell }: Session): Promise<unknown> {
  const client = new Client({ ...connection, query_timeout: PROOF_LIMIT_MS })
  const over = new AbortController()
  const ended = linkSignals(signal, over.signal)
  client.on('error', (error) => over.abort(error))
  client.on('end', () => over.abort(new Error('the connection ended')))
  client.on('notification', tell)
  try {
    await client.connect()
    await client.query(`LISTEN ${CHANNEL}`)
    connected()
    for (;;) {
      await clock.sleep(PROOF_MS, ended)
      await client.query('SELECT 1')
    }
  } catch (error) {
    return error
  } finally {
    over.abort()
    // A server that is silent must not keep us: the socket goes with the pool's.
    client.end().catch(() => {})
  }
}
