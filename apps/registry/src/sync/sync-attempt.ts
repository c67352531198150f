import type { FetchContext, FetchProblem, FetchResult, FetchState } from '@thv/catalog/sources/fetch/registry-handler'
import { sourceTypeOf } from '@thv/catalog/sources/fetch/source-config'
import { stateIdentity } from '@thv/catalog/sources/fetch/source-hash'
import { abortable } from '@thv/kernel/deadline'
import { formatDuration } from '@thv/kernel/duration'
import { errorMessage, isThvError, ThvError } from '@thv/kernel/errors'
import { jsonEqual } from '@thv/kernel/json'
import { linkSignals } from '@thv/kernel/lifecycle'
import { scrub } from '@thv/telemetry/redact'
import type { LeasedSource, SyncOutcome } from '../store/registry-store.ts'
import { outsideFolders } from './allowed-folders.ts'
import { entryChanges } from './entry-changes.ts'
import { keepLease } from './lease-keeper.ts'
import { nextAfterFailure, nextAfterSuccess } from './next-attempt.ts'
import type { SyncOptions } from './sync-options.ts'

export type AttemptEnd = 'succeeded' | 'unchanged' | 'failed' | 'lost' | 'stopped'

/**
 * One attempt to sync one leased source, from the fetch to the store. Nothing is written until all is known, and then in one
 * transaction, which the store refuses if the lease is lost. Never rejects but for what is wrong with the program.
 */
export async function syncSource(leased: LeasedSource, options: SyncOptions, signal: AbortSignal): Promise<AttemptEnd> {
  const log = options.log.child({ source: leased.config.name })
  const lease = keepLease(leased.lease, options, signal)
  const startedAt = options.clock.monotonic()
  try {
    const { end, outcome } = await outcomeOf(leased, options, lease.signal)
    lease.signal.throwIfAborted()
    await inStage('Storage failed', () => options.store.finishSync(leased.lease, outcome))
    const fields = { ms: Math.round(options.clock.monotonic() - startedAt), reason: reasonOf(leased, end) }
    if (outcome.kind === 'changed') log.info('synced', { ...fields, ...countsOf(outcome) })
    else log[leased.manual || leased.sync.attemptCount > 0 ? 'info' : 'debug']('synced: nothing has changed', fields)
    return end
  } catch (e) {
    if (signal.aborted) return await giveBack(leased, options)
    if (isThvError(e, 'lease_lost') || isThvError(lease.signal.reason, 'lease_lost')) {
      log.warn('sync given up: the lease is lost, or the source has changed meanwhile')
      return 'lost'
    }
    return await reportFailure(e, { leased, options, log })
  } finally {
    lease.release()
  }
}

type Ended = { readonly end: AttemptEnd; readonly outcome: SyncOutcome }

async function outcomeOf(leased: LeasedSource, options: SyncOptions, signal: AbortSignal): Promise<Ended> {
  const { config, sync } = leased
  const { store, pause } = options
  const nextInMs = nextAfterSuccess(config, options)
  const fetched = await fetchSource(leased, options, signal)
  const state = wrapState(leased, fetched.state)
  // The hash is that of the last success: whatever was tried since, the store has the data it stands for.
  const same = sync.hash === fetched.hash
  if (fetched.kind === 'unchanged' || (same && (fetched.kind === 'full' || namesOf(fetched).length === 0))) {
    const problems = fetched.kind === 'delta' || fetched.problems === undefined ? undefined : shownProblems(fetched.problems)
    const others = problems !== undefined && !jsonEqual(problems.shown, sync.problems)
    const news = others ? { problems: problems.shown, problemCount: problems.count } : {}
    return { end: 'unchanged', outcome: { kind: 'unchanged', nextInMs, state, ...news } }
  }
  const fingerprints = store.fingerprints(config.name, signal, fetched.kind === 'delta' ? namesOf(fetched) : undefined)
  const { upserts, gone, problems } = await inStage('Filtering failed', () =>
    entryChanges({ source: config, fetched, fingerprints, pause: () => turn(pause, signal) }),
  )
  const { shown } = shownProblems(problems)
  const facts = { nextInMs, state, hash: fetched.hash, message: 'Sync completed successfully' }
  return { end: 'succeeded', outcome: { kind: 'changed', ...facts, problems: shown, problemCount: problems.length, upserts, gone } }
}

function namesOf({ entries, gone = [] }: Extract<FetchResult, { kind: 'delta' }>): readonly string[] {
  return [...new Set([...entries, ...gone].map(({ name }) => name))]
}

const MAX_PROBLEMS = 100

function shownProblems(problems: readonly FetchProblem[]): { shown: readonly FetchProblem[]; count: number } {
  const shown = problems.slice(0, MAX_PROBLEMS).map((problem) => ({ ...problem, message: scrub(problem.message) }))
  return { shown, count: problems.length }
}

async function fetchSource(leased: LeasedSource, options: SyncOptions, signal: AbortSignal): Promise<FetchResult> {
  const { config } = leased
  const type = sourceTypeOf(config)
  const handler = options.handlers[type]
  if (!handler) throw new Staged('Failed to create registry handler', `there is none for sources of type ${type}`)
  const problems = handler.validate(config)
  if (problems.length > 0) throw new Staged('Registry validation failed', problems.join('; '))
  const outside = await outsideFolders(config, options)
  if (outside !== undefined) throw new Staged('Registry validation failed', outside)
  const { clock, limits } = options
  const late = new AbortController()
  const timer = clock.setTimer(limits.timeoutMs, () =>
    late.abort(new ThvError('source_limit', `no result within ${formatDuration(limits.timeoutMs)}`)),
  )
  const limit = linkSignals(signal, late.signal)
  const context: FetchContext = {
    signal: limit,
    clock,
    state: unwrapState(leased),
    limits,
    memo: new Map(),
    warn: (message) => options.log.warn(scrub(message), { source: config.name }),
    allowPrivateAddresses: options.config.allowPrivateAddresses,
    ...(options.blockedAddresses && { blockedAddresses: options.blockedAddresses }),
    tempDir: options.tempDir,
    place: options.place,
  }
  try {
    // A handler that does not look at its signal is left behind.
    return await inStage('Fetch failed', () => abortable(handler.fetchRegistry(config, context), limit))
  } finally {
    timer.cancel()
  }
}

/** The remains of a fetch are valid for the same location and treatment only. */
function wrapState({ config }: LeasedSource, state: FetchState): FetchState {
  return { for: stateIdentity(config), state }
}

function unwrapState({ config, state, sync }: LeasedSource): FetchState | undefined {
  if (state?.['for'] !== stateIdentity(config) || sync.hash === undefined) return undefined
  return state['state'] as FetchState
}

interface Failure {
  readonly leased: LeasedSource
  readonly options: SyncOptions
  readonly log: SyncOptions['log']
}

async function reportFailure(e: unknown, { leased, options, log }: Failure): Promise<AttemptEnd> {
  const message = scrub(errorMessage(e)).slice(0, MAX_MESSAGE)
  const nextInMs = nextAfterFailure(leased, options)
  log[isNews(leased, message) ? 'warn' : 'debug']('sync failed; the last good data stay', {
    error: message,
    attempt: leased.sync.attemptCount + 1,
    retryInMs: Math.round(nextInMs),
  })
  try {
    await options.store.finishSync(leased.lease, { kind: 'failed', nextInMs, message })
    return 'failed'
  } catch (failure) {
    // The lease runs out by itself, and then the source is due again.
    log.warn('how a sync ended could not be stored', { error: errorMessage(failure) })
    return isThvError(failure, 'lease_lost') ? 'lost' : 'failed'
  }
}

/** There is no result to store; the next replica need not wait until the lease runs out. */
async function giveBack({ lease }: LeasedSource, { store, log }: SyncOptions): Promise<AttemptEnd> {
  try {
    await store.renewLease(lease, 1)
  } catch (e) {
    log.debug('a lease could not be given back', { source: lease.source, error: e })
  }
  return 'stopped'
}

const MAX_MESSAGE = 1_000

/** A repeated failure is logged at the second, fourth, eighth … attempt: a source that is away must not fill the log. */
function isNews({ sync, manual }: LeasedSource, message: string): boolean {
  return manual || message !== sync.message || Number.isInteger(Math.log2(sync.attemptCount + 1))
}

/** Why it was synced, and what came of it, as operators know the words. */
function reasonOf({ manual, sync }: LeasedSource, end: AttemptEnd): string {
  if (end === 'unchanged') return manual ? 'manual-sync-no-data-changes' : 'up-to-date'
  if (sync.phase !== 'complete' || sync.hash === undefined) return 'registry-not-ready'
  return manual ? 'manual-sync-with-data-changes' : 'source-data-changed'
}

function countsOf({ upserts, gone, problemCount, problems: [first] }: Extract<SyncOutcome, { kind: 'changed' }>): Record<string, unknown> {
  return {
    written: upserts.length,
    gone: gone.length,
    problems: problemCount,
    ...(first && { firstProblem: `${first.entry} ${first.pointer}: ${first.message}` }),
  }
}

/** A failure with the name of the step it happened in, as the status shows it. */
class Staged extends Error {
  constructor(stage: string, problem: string, cause?: unknown) {
    super(problem === '' ? stage : `${stage}: ${problem}`, cause === undefined ? undefined : { cause })
  }
}

async function inStage<T>(stage: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (e) {
    if (isThvError(e, 'lease_lost') || e instanceof Staged) throw e
    throw new Staged(isThvError(e, 'store_unavailable') ? 'Storage failed' : stage, '', e)
  }
}

async function turn(pause: () => Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  await pause()
}
