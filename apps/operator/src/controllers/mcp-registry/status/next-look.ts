import { done, type Outcome, requeueAfter } from '@thv/kube'
import type { RegistryPlan } from '../plan/plan.ts'
import type { SyncFacts } from './sync-status.ts'

const SOON_MS = 5_000
const LATER_MS = 60_000
const MAX_SPREAD_MS = 30_000

type Plan = Pick<RegistryPlan, 'spec' | 'trigger'>

/** The server tells nothing by itself, so it is asked: soon while something is under way, else at most once a minute. Pure but for `random`. */
export function nextLook(sync: SyncFacts, { spec, trigger }: Plan, random: () => number = Math.random): Outcome {
  // Registries that failed together do not come back together.
  if (sync.nextMs !== undefined) return requeueAfter(Math.round(sync.nextMs + Math.min(0.2 * sync.nextMs, MAX_SPREAD_MS) * random()))
  if ('source' in spec) return done
  const isWaiting = sync.pending || (trigger !== undefined && 'registries' in spec && sync.doneTrigger !== trigger)
  return spec.api.enabled ? requeueAfter(Math.round((isWaiting ? SOON_MS : LATER_MS) * (1 + 0.2 * random()))) : done
}
