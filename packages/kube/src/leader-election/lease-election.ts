import { type Clock, systemClock, type Timer } from '@thv/kernel/clock'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { linkSignals } from '@thv/kernel/lifecycle'
import type { KubeClient } from '../client/client.ts'
import { createLeaseLock, type LeaseLock } from './lease-lock.ts'

export interface LeaseOptions {
  readonly client: Pick<KubeClient, 'tryGet' | 'create' | 'update'>
  readonly namespace: string
  readonly name: string
  /** Identity of this candidate, for people and for the others. Should be unique per process, such as the pod's name and a random part. */
  readonly identity: string
  /** How long the others wait after the last sign of life. Rounded up to whole seconds. Default 15 s. */
  readonly leaseDurationMs?: number
  /** Work stops when the last renewal was sent this long ago. Default 10 s; the difference to the duration is its time to stop. */
  readonly renewDeadlineMs?: number
  /** Between two attempts, with jitter. Default 2 s. */
  readonly retryPeriodMs?: number
  readonly clock?: Clock
  /** A graceful stop. */
  readonly signal: AbortSignal
  /** The work. Its signal aborts at a stop and when the lease is lost; it must then end soon. */
  readonly onStart: (signal: AbortSignal) => Promise<void>
  /** Told at once, while the work may still be ending. */
  readonly onLost?: (reason: ThvError) => void
  /** Told of each new holder that is seen, ourselves included. */
  readonly onNewLeader?: (identity: string) => void
  /** Default true. */
  readonly releaseOnStop?: boolean
  readonly log?: LeaseLog
  readonly random?: () => number
}

export interface LeaseLog {
  info(message: string, fields?: Record<string, unknown>): void
  warn(message: string, fields?: Record<string, unknown>): void
}

/**
 * Runs the work only while this process holds the Lease, and again each time it gets it. Resolves after a stop, when the work has ended
 * and the lease is released, or when the work ends by itself; rejects when the work fails by itself. Two works of one call never run at
 * the same time: after a loss it competes again only once the old one has ended. While the work ends after a stop the lease is still
 * renewed, so that no other begins too early.
 */
export async function runWithLease(options: LeaseOptions): Promise<void> {
  const settings = settingsOf(options)
  const { signal, log, clock } = settings
  const lock = createLeaseLock({ ...settings, key: { namespace: options.namespace, name: options.name } })
  try {
    while (!signal.aborted) {
      const sentAt = await acquire(lock, settings)
      if (sentAt === undefined) return
      log?.info(`lease ${options.name} acquired`, { identity: options.identity })
      if ((await lead(lock, settings, sentAt)) === 'ended') return
      await clock.sleep(jittered(settings), signal).catch(() => {}) // the loop sees the abort
    }
  } finally {
    if (settings.releaseOnStop && lock.mayBeOurs) await release(lock, settings)
  }
}

type Settings = ReturnType<typeof settingsOf>

function settingsOf(options: LeaseOptions) {
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = options
  if (!(leaseDurationMs > renewDeadlineMs && renewDeadlineMs > retryPeriodMs * (1 + JITTER) && retryPeriodMs > 0)) {
    throw new RangeError(
      `a lease needs leaseDurationMs > renewDeadlineMs > ${1 + JITTER} * retryPeriodMs > 0, got ${leaseDurationMs}, ${renewDeadlineMs} and ${retryPeriodMs}`,
    )
  }
  if (options.identity === '') throw new RangeError('a lease needs an identity')
  const times = { leaseDurationMs, renewDeadlineMs, retryPeriodMs, callLimitMs: renewDeadlineMs / 2 }
  return {
    ...options,
    ...times,
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
    releaseOnStop: options.releaseOnStop ?? true,
  }
}

/** Returns when the winning write was sent; undefined at a stop. */
async function acquire(lock: LeaseLock, settings: Settings): Promise<number | undefined> {
  const { clock, signal, callLimitMs, log } = settings
  let lastFailure = ''
  while (!signal.aborted) {
    try {
      const attempt = await watchHolder(lock, settings, () => lock.hold({ signal, timeoutMs: callLimitMs }))
      if (attempt.kind === 'held') return attempt.sentAt
      lastFailure = ''
    } catch (error) {
      if (signal.aborted) return undefined
      const failure = errorMessage(error)
      if (failure !== lastFailure) log?.warn(`lease ${settings.name} cannot be read or taken`, { error: failure })
      lastFailure = failure
    }
    await clock.sleep(jittered(settings), signal).catch(() => {}) // the loop sees the abort
  }
  return undefined
}

/** Until the work has ended. `lost`: it may be tried again. */
async function lead(lock: LeaseLock, settings: Settings, firstSentAt: number): Promise<'ended' | 'lost'> {
  const { signal, log, onLost, onStart } = settings
  const lost = new AbortController()
  const ended = new AbortController()
  const lose = (message: string) => {
    if (lost.signal.aborted || ended.signal.aborted) return
    const reason = new ThvError('lease_lost', `lease ${settings.namespace}/${settings.name}: ${message}`)
    lost.abort(reason)
    log?.warn(reason.message)
    tell(settings, () => onLost?.(reason))
  }
  const deadline = createDeadline(settings, () => lose(`not renewed within ${settings.renewDeadlineMs} ms`))
  deadline.extend(firstSentAt)

  // Not started in this turn when the answer came too late: the deadline has fired then.
  const working = lost.signal.aborted ? Promise.resolve() : start(onStart, linkSignals(lost.signal, signal))
  const renewing = keepRenewing(lock, settings, { deadline, lose, until: linkSignals(lost.signal, ended.signal) })
  try {
    await working
  } catch (error) {
    if (!lost.signal.aborted && !signal.aborted) throw error
    log?.warn('the work ended with an error after it was stopped', { error: errorMessage(error) })
  } finally {
    ended.abort()
    deadline.cancel()
    await renewing
  }
  return lost.signal.aborted && !signal.aborted ? 'lost' : 'ended'
}

async function start(onStart: LeaseOptions['onStart'], signal: AbortSignal): Promise<void> {
  await onStart(signal)
}

interface Renewal {
  readonly deadline: Deadline
  readonly lose: (message: string) => void
  readonly until: AbortSignal
}

async function keepRenewing(lock: LeaseLock, settings: Settings, { deadline, lose, until }: Renewal): Promise<void> {
  const { clock, callLimitMs, log } = settings
  while (!until.aborted) {
    try {
      await clock.sleep(jittered(settings), until)
      const timeoutMs = Math.max(1, Math.min(callLimitMs, deadline.leftMs()))
      const attempt = await watchHolder(lock, settings, () => lock.hold({ signal: until, timeoutMs }))
      if (attempt.kind === 'held') deadline.extend(attempt.sentAt)
      if (attempt.kind === 'taken') lose(`taken by ${JSON.stringify(attempt.holder)}`)
    } catch (error) {
      if (!until.aborted)
        log?.warn(`lease ${settings.name} could not be renewed`, { error: errorMessage(error), leftMs: deadline.leftMs() })
    }
  }
}

async function watchHolder<T>(lock: LeaseLock, settings: Settings, attempt: () => Promise<T>): Promise<T> {
  const { onNewLeader } = settings
  const before = lock.holder
  const result = await attempt()
  if (lock.holder !== '' && lock.holder !== before) tell(settings, () => onNewLeader?.(lock.holder))
  return result
}

/** A listener that throws must not cost the lease. */
function tell({ log }: Settings, listener: () => void): void {
  try {
    listener()
  } catch (error) {
    log?.warn('a listener of the lease failed', { error: errorMessage(error) })
  }
}

/** Best effort: without it the others wait until the lease has run out. */
async function release(lock: LeaseLock, { callLimitMs, log, name }: Settings): Promise<void> {
  try {
    if (await lock.release({ timeoutMs: callLimitMs })) log?.info(`lease ${name} released`)
  } catch (error) {
    log?.warn(`lease ${name} could not be released`, { error: errorMessage(error) })
  }
}

interface Deadline {
  /** Counted from when the renewal was sent: the others count from when it was written, which is later. */
  extend(sentAt: number): void
  leftMs(): number
  cancel(): void
}

function createDeadline({ clock, renewDeadlineMs }: Settings, onOver: () => void): Deadline {
  let at = 0
  let timer: Timer | undefined
  const deadline: Deadline = {
    extend(sentAt) {
      at = sentAt + renewDeadlineMs
      timer?.cancel()
      if (deadline.leftMs() <= 0) onOver()
      else timer = clock.setTimer(deadline.leftMs(), onOver)
    },
    leftMs: () => at - clock.monotonic(),
    cancel: () => timer?.cancel(),
  }
  return deadline
}

const JITTER = 0.2

function jittered({ retryPeriodMs, random }: Settings): number {
  return retryPeriodMs * (1 + JITTER * (2 * random() - 1))
}
