/** `metav1.Condition`. */
export interface Condition {
  type: string
  status: ConditionStatus
  /** One word in CamelCase for programs; the exported constants of each controller. */
  reason: string
  /** A sentence for people that says what to do next. */
  message: string
  /** When `status` last changed, not when the condition was last written. */
  lastTransitionTime: string
  observedGeneration?: number
}

export type ConditionStatus = 'True' | 'False' | 'Unknown'

export type ConditionUpdate = Omit<Condition, 'lastTransitionTime' | 'observedGeneration'> & { observedGeneration?: number | undefined }

export type Conditions = readonly Condition[]

/**
 * The list with this condition in it: replaced where it stood, or appended. When nothing changes the very same array comes back,
 * so `===` tells whether a write is needed. Throws a RangeError for a type or reason that the API server would refuse.
 */
export function setCondition(list: Conditions | undefined, update: ConditionUpdate, nowIso: string): Conditions {
  check(update)
  const conditions = list ?? []
  const at = conditions.findIndex((condition) => condition.type === update.type)
  const old = conditions[at]
  const next: Condition = {
    type: update.type,
    status: update.status,
    reason: update.reason,
    message: cutMessage(update.message),
    lastTransitionTime: old?.status === update.status ? old.lastTransitionTime : toSeconds(nowIso),
  }
  if (update.observedGeneration !== undefined) next.observedGeneration = update.observedGeneration

  if (old === undefined) return [...conditions, next]
  return isSame(old, next) ? conditions : conditions.with(at, next)
}

/** The same array when there is no such condition. */
export function removeCondition(list: Conditions | undefined, type: string): Conditions {
  const conditions = list ?? []
  return conditions.some((condition) => condition.type === type) ? conditions.filter((condition) => condition.type !== type) : conditions
}

export function getCondition(list: Conditions | undefined, type: string): Condition | undefined {
  return list?.find((condition) => condition.type === type)
}

export function isTrue(list: Conditions | undefined, type: string): boolean {
  return getCondition(list, type)?.status === 'True'
}

function isSame(a: Condition, b: Condition): boolean {
  return (
    a.status === b.status &&
    a.reason === b.reason &&
    a.message === b.message &&
    a.lastTransitionTime === b.lastTransitionTime &&
    a.observedGeneration === b.observedGeneration
  )
}

const MAX_MESSAGE = 32_768
const STATUSES: readonly string[] = ['True', 'False', 'Unknown']

/** Limits of `metav1.Condition`. */
function check({ type, status, reason }: ConditionUpdate): void {
  if (type.length > 316 || !TYPE.test(type)) throw new RangeError(`"${type}" is not a condition type`)
  if (!STATUSES.includes(status)) throw new RangeError(`condition ${type}: status "${status}" is not True, False or Unknown`)
  if (reason.length > 1024 || !REASON.test(reason)) throw new RangeError(`condition ${type}: "${reason}" is not a reason in CamelCase`)
}

const TYPE = /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/
const REASON = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/

/** The server counts characters, we count UTF-16 units: never more than it allows, and never half a character. */
function cutMessage(message: string): string {
  if (message.length <= MAX_MESSAGE) return message
  const cut = message.slice(0, MAX_MESSAGE)
  return /[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut
}

/** Kubernetes writes condition times in whole seconds. */
function toSeconds(iso: string): string {
  return iso.replace(/\.\d+(?=Z$|[+-]\d\d:\d\d$)/, '')
}
