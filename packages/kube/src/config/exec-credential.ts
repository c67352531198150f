import { type Clock, systemClock } from '@thv/kernel/clock'
import { createSingleFlight } from '@thv/kernel/single-flight'
import type { AuthSource } from '../client/connection.ts'
import { type ExecCredential, type ExecPlugin, runExecPlugin } from './exec-plugin.ts'

export interface ExecCredentialOptions {
  readonly plugin: ExecPlugin
  readonly env: Readonly<Record<string, string | undefined>>
  /** Whether the plugin gets our terminal. */
  readonly interactive: boolean
  readonly clock?: Clock | undefined
  /** Of one run. Default 60 s, 5 min with a terminal: somebody may have to log in. */
  readonly timeoutMs?: number | undefined
  /** Runs that 401s ask for have at least this much time between them. Default 10 s. */
  readonly minRenewalMs?: number | undefined
}

/** A credential that is about to expire would do so on its way. */
const LEEWAY_MS = 5_000

/**
 * Credentials that a program prints. It is run when they are first needed, when they have expired, and after a 401; never twice at a
 * time. A caller that gives up waiting does not stop it: others may wait for the same run, and its result is kept.
 */
export function execCredential(options: ExecCredentialOptions): AuthSource {
  const { plugin, env, interactive, clock = systemClock, minRenewalMs = 10_000 } = options
  const timeoutMs = options.timeoutMs ?? (interactive ? 300_000 : 60_000)
  const flight = createSingleFlight<'run', ExecCredential>()
  let held: ExecCredential | undefined
  let refused = false
  let renewedAt = Number.NEGATIVE_INFINITY

  async function current(): Promise<ExecCredential> {
    const isExpired = held?.expiresAt !== undefined && clock.now() >= held.expiresAt - LEEWAY_MS
    if (held !== undefined && !isExpired && !refused) return held
    return await flight.run('run', async () => {
      if (refused) renewedAt = clock.monotonic()
      refused = false
      held = undefined
      held = await runExecPlugin(plugin, { env, interactive, timeoutMs, clock })
      return held
    })
  }

  return {
    async header() {
      const { token } = await current()
      return token === undefined ? undefined : `Bearer ${token}`
    },
    certificate: async () => (await current()).certificate,
    /** A server that refuses everything must not make us run the plugin for each call. */
    invalidate() {
      if (clock.monotonic() - renewedAt >= minRenewalMs) refused = true
    },
  }
}
