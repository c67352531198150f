import { createHash } from 'node:crypto'
import { compareCodePoints } from '../../text.ts'
import type { FetchContext, FetchedEntry, FetchState } from '../fetch/registry-handler.ts'
import type { SourceConfig } from '../fetch/source-config.ts'
import { stateIdentity } from '../fetch/source-hash.ts'

/** Asked for once more, since clocks and transactions of the other registry need not agree with the order in which they appear. */
const OVERLAP_MS = 5 * 60_000
/** Entries that were removed without a trace are found by reading everything again. */
const FULL_EVERY_MS = 24 * 3_600_000
/** The same for a registry that does not answer what changed: perhaps its next release does. */
const ASK_AGAIN_MS = FULL_EVERY_MS

/** State that a fetch of another registry leaves for the next one. */
export type ApiState = FetchState & {
  readonly identity: string
  readonly hash: string
  /** The next fetch asks for changes after this; epoch ms, by the other registry's clock. */
  readonly since: number
  /** When everything was read; epoch ms, our clock. */
  readonly fullAt: number
  /** Of the entries that the next question brings if nothing changes. */
  readonly window: string
}

/** Undefined: everything has to be read. */
export function usableState(source: SourceConfig, { state, clock }: FetchContext): ApiState | undefined {
  const { identity, hash, since, fullAt, window } = state ?? {}
  if (identity !== stateIdentity(source)) return undefined
  if (typeof hash !== 'string' || typeof since !== 'number' || typeof fullAt !== 'number' || typeof window !== 'string') return undefined
  const age = clock.now() - fullAt
  return age >= 0 && age < FULL_EVERY_MS ? { identity, hash, since, fullAt, window } : undefined
}

/** Until when the registry is not asked what changed, because it was asked and did not answer; epoch ms, our clock. */
export function silentUntil(source: SourceConfig, { state, clock }: FetchContext): number | undefined {
  const until = state?.['identity'] === stateIdentity(source) ? state['silentUntil'] : undefined
  const now = clock.now()
  return typeof until === 'number' && until > now && until <= now + ASK_AGAIN_MS ? until : undefined
}

export function silentFrom(now: number): number {
  return now + ASK_AGAIN_MS
}

export interface StateParts {
  readonly source: SourceConfig
  readonly entries: readonly FetchedEntry[]
  readonly hash: string
  /** When this fetch began; epoch ms, our clock. */
  readonly startedAt: number
  readonly fullAt: number
  readonly atLeast?: number
  readonly silentUntil?: number | undefined
}

/** Without times of the other registry there is nothing to ask with: then everything is read each time. */
export function nextState({ source, entries, hash, startedAt, fullAt, atLeast, silentUntil }: StateParts): FetchState {
  const identity = stateIdentity(source)
  if (silentUntil !== undefined) return { identity, hash, fullAt, silentUntil }
  const times = entries.map(updatedMs)
  if (times.includes(Number.NEGATIVE_INFINITY)) return { identity, hash, fullAt }
  const newest = times.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY)
  // A time that is yet to come would hide all that changes until then.
  const since = Math.max(Math.min(newest, startedAt) - OVERLAP_MS, atLeast ?? Number.NEGATIVE_INFINITY)
  if (!Number.isFinite(since)) return { identity, hash, fullAt }
  const window = digest(entries.filter((entry) => updatedMs(entry) > since))
  return { identity, hash, since, fullAt, window }
}

export function updatedMs({ updatedAt }: FetchedEntry): number {
  const time = Date.parse(updatedAt ?? '')
  return Number.isNaN(time) ? Number.NEGATIVE_INFINITY : time
}

export function digest(entries: readonly FetchedEntry[]): string {
  const hash = createHash('sha256')
  for (const entry of sorted(entries)) hash.update(`${contentOf(entry)}${JSON.stringify(entry.updatedAt ?? null)}\n`)
  return hash.digest('hex')
}

export function sorted(entries: readonly FetchedEntry[]): FetchedEntry[] {
  return entries.toSorted((a, b) => compareCodePoints(a.name, b.name) || compareCodePoints(a.version, b.version))
}

/** One line; each part ends where the next begins. */
export function contentOf({ name, version, text, status, statusMessage, publishedAt }: FetchedEntry): string {
  return `${JSON.stringify([name, version, status ?? null, statusMessage ?? null, publishedAt ?? null])}${text}\n`
}
