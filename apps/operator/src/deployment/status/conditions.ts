import { type Condition, type Conditions, type ConditionUpdate, getCondition, removeCondition, setCondition } from '@thv/kube'
import type { OperatorEvent } from '../../environment.ts'

export interface ConditionChanges {
  readonly set: readonly ConditionUpdate[]
  /** Types that say nothing any more. */
  readonly remove?: readonly string[]
}

/** The conditions after one reconcile. Pure; the same array when nothing changed. */
export function nextConditions(
  current: Conditions | undefined,
  { set, remove = [] }: ConditionChanges,
  { generation, now }: { generation: number | undefined; now: number },
): Conditions {
  const nowIso = new Date(now).toISOString()
  const kept = remove.reduce<Conditions>((list, type) => removeCondition(list, type), current ?? [])
  return set.reduce<Conditions>((list, update) => setCondition(list, { ...update, observedGeneration: generation }, nowIso), kept)
}

export interface EventRules {
  /** Conditions whose True is the bad news. */
  readonly warnsWhenTrue?: ReadonlySet<string>
  /** Conditions that begin as bad news on the way to good ones: told only when they were good before. */
  readonly startsBad?: ReadonlySet<string>
}

/** One event for each condition that has become what somebody should know of, or has recovered from it. Pure. */
export function transitionEvents(before: Conditions | undefined, after: Conditions, rules: EventRules = {}): OperatorEvent[] {
  const { warnsWhenTrue = NONE, startsBad = NONE } = rules
  const isBad = ({ type, status }: Condition) => (warnsWhenTrue.has(type) ? status === 'True' : status === 'False')
  return after.flatMap((condition): OperatorEvent[] => {
    const { type, reason, message: note } = condition
    const old = getCondition(before, type)
    const wasBad = old !== undefined && isBad(old)
    if (!isBad(condition)) return wasBad ? [{ type: 'Normal', reason, note }] : []
    if (startsBad.has(type) && (old === undefined || wasBad)) return []
    return wasBad && old.reason === reason && old.message === note ? [] : [{ type: 'Warning', reason, note }]
  })
}

const NONE: ReadonlySet<string> = new Set()
