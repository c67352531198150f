import type { SourcesReport } from '@thv/catalog/status/sources-report'
import { formatKey, type ObjectKey } from '@thv/kube'
import { imageListsOf } from '../../enforcement/image-lists.ts'
import type { Env } from '../../environment.ts'
import { ContributionReader } from './aggregate/contribution-reader.ts'
import { EntryMerges } from './aggregate/entry-merges.ts'
import { KnownServerLookup } from './plan/known-servers.ts'
import { EnforcedImages } from './report/enforced-images.ts'
import { IMAGES } from './report/images-report.ts'
import { ReportReader } from './report/report-reader.ts'
import { SOURCES } from './report/sources-report.ts'
import { createSyncRunner, type SyncRunner } from './sync/sync-runner.ts'

/** Memory of the controller: everything in it can be found out again, so a new operator begins without. */
export interface RegistryState {
  readonly contributions: ContributionReader
  readonly merges: EntryMerges
  readonly reports: ReportReader<SourcesReport>
  readonly images: EnforcedImages
  readonly knownServers: KnownServerLookup
  readonly syncs: SyncRunner
  /** True at most once a minute for each registry: whether times that changed alone may be written. */
  mayWriteTimes(key: ObjectKey, now: number): boolean
  /** True once for each value of the sync-trigger annotation. */
  isNewTrigger(key: ObjectKey, trigger: string | undefined): boolean
  forget(key: ObjectKey): void
}

const states = new WeakMap<object, RegistryState>()

const TIMES_MS = 60_000

/** One state per operator. */
export function stateOf(env: Env): RegistryState {
  const known = states.get(env.caches)
  if (known !== undefined) return known
  const writtenAt = new Map<string, number>()
  const triggers = new Map<string, string>()
  const state: RegistryState = {
    contributions: new ContributionReader(env.client),
    merges: new EntryMerges(),
    reports: new ReportReader(SOURCES),
    images: new EnforcedImages({ lists: imageListsOf(env.caches), reports: new ReportReader(IMAGES) }),
    knownServers: new KnownServerLookup(),
    syncs: createSyncRunner(env),
    mayWriteTimes(key, now) {
      const id = formatKey(key)
      if (now - (writtenAt.get(id) ?? Number.NEGATIVE_INFINITY) < TIMES_MS) return false
      writtenAt.set(id, now)
      return true
    },
    isNewTrigger(key, trigger) {
      const id = formatKey(key)
      if (trigger === undefined || triggers.get(id) === trigger) return false
      triggers.set(id, trigger)
      return true
    },
    forget(key) {
      writtenAt.delete(formatKey(key))
      triggers.delete(formatKey(key))
      state.knownServers.forget(formatKey(key))
      state.merges.forget(formatKey(key))
    },
  }
  states.set(env.caches, state)
  return state
}
