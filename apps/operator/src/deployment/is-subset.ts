import { jsonEqual } from '@thv/kernel/json'
import { readQuantity } from '@thv/kube-schema/values/quantity'

/**
 * Whether a live object has all that is wanted: every member of `wanted`, down to the leaves. What the server or others have added is no
 * difference. Items of a list are found by their name, path or port where they have one, and by their place otherwise; a list of plain
 * values must be equal, and so must members that one owner applies as a whole. Pure.
 */
export function covers(live: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) return Array.isArray(live) && coversList(live, wanted)
  if (isObject(wanted)) {
    // The server drops members that are empty, so {} and nothing are the same.
    if (!isObject(live)) return live === undefined && Object.values(wanted).every((value) => covers(undefined, value))
    return Object.entries(wanted).every(
      ([key, value]) => value === undefined || (ATOMIC.has(key) ? jsonEqual(live[key], value) : covers(live[key], value)),
    )
  }
  return live === wanted || sameQuantity(live, wanted)
}

/**
 * Members that server-side apply treats as one value, so others cannot add to them: an addition would widen what a runner may do, what a
 * server may reach, or where clients are led.
 */
const ATOMIC: ReadonlySet<string> = new Set(['selector', 'podSelector', 'nodeSelector', 'rules', 'subjects', 'ingress', 'egress'])

function coversList(live: readonly unknown[], wanted: readonly unknown[]): boolean {
  if (!wanted.every(isObject)) return live.length === wanted.length && wanted.every((item, at) => covers(live[at], item))
  const key = MERGE_KEYS.find((name) => wanted.every((item) => item[name] !== undefined))
  if (key === undefined) return live.length === wanted.length && wanted.every((item, at) => covers(live[at], item))
  return wanted.every((item) => live.some((candidate) => isObject(candidate) && candidate[key] === item[key] && covers(candidate, item)))
}

/** Of the lists that we apply: volume mounts, ports, containers, variables, references. */
const MERGE_KEYS = ['mountPath', 'containerPort', 'port', 'uid', 'name'] as const

/** The server writes quantities in its own way: `1000m` comes back as `1`. */
function sameQuantity(live: unknown, wanted: unknown): boolean {
  if (typeof live !== 'string' || typeof wanted !== 'string') return false
  const [a, b] = [readQuantity(live), readQuantity(wanted)]
  return a !== undefined && b !== undefined && a.nanos === b.nanos
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
