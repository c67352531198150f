import { events, isConflict, isNotFound, type KubeEvent, type KubeObject, keyOf } from '@thv/kube'
import type { ControllerEnv, RunningController } from '../controller-env.ts'

export interface EventExpirySettings {
  /** How long an Event is kept after it last happened. Default 1 h. */
  readonly eventTtlMs?: number | undefined
}

const BATCH = 50
const PAUSE_MS = 100

/** Deletes Events that are old, a few at a time: there may be many, and it is not urgent. */
export function eventExpiry(env: ControllerEnv, { eventTtlMs = 3_600_000 }: EventExpirySettings = {}): RunningController {
  const { client, clock } = env

  async function sweep(signal: AbortSignal): Promise<void> {
    const limit = clock.now() - eventTtlMs
    const old: KubeObject[] = []
    for await (const { items } of client.listPages(events, { signal }))
      for (const event of items) if (lastSeen(event) <= limit) old.push({ metadata: event.metadata })
    for (let at = 0; at < old.length; at += BATCH) {
      for (const event of old.slice(at, at + BATCH)) await remove(event, signal)
      await clock.sleep(PAUSE_MS, signal)
    }
  }

  async function remove(event: KubeObject, signal: AbortSignal): Promise<void> {
    const { uid, resourceVersion } = event.metadata
    await client.delete(events, keyOf(event), { preconditions: { uid, resourceVersion }, signal }).catch((error: unknown) => {
      if (!isNotFound(error) && !isConflict(error)) throw error // gone, or it has happened again
    })
  }

  async function run(signal: AbortSignal): Promise<void> {
    const interval = Math.min(60_000, Math.max(1_000, eventTtlMs / 4))
    while (!signal.aborted) {
      await sweep(signal).catch((error: unknown) => {
        if (!signal.aborted) env.onError(error)
      })
      await clock.sleep(interval, signal).catch(() => undefined) // aborted: the loop ends
    }
  }

  return { name: 'event-expiry', run }
}

/** The latest of the times that an Event carries; which of them are set depends on who wrote it. */
function lastSeen(event: KubeEvent): number {
  const { creationTimestamp } = event.metadata
  const { deprecatedLastTimestamp } = event as { deprecatedLastTimestamp?: string | null }
  const times = [creationTimestamp, event.eventTime, deprecatedLastTimestamp, event.series?.lastObservedTime]
  return Math.max(0, ...times.map((time) => Date.parse(time ?? '')).filter(Number.isFinite))
}
