/**
 * Whether a live object has all that is wanted: every member of `wanted`, down to the leaves. What the server or others have added is no
 * difference. Items of a list are found by their name, path or port where they have one, and by their place otherwise; a list of plain
 * values must be equal. Pure.
 */
export function covers(live: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) return Array.isArray(live) && coversList(live, wanted)
  if (isObject(wanted)) {
    // The server drops members that are empty, so {} and nothing are the same.
    if (!isObject(live)) return live === undefined && Object.values(wanted).every((value) => covers(undefined, value))
    return Object.entries(wanted).every(([key, value]) => value === undefined || covers(live[key], value))
  }
  return live === wanted || sameQuantity(live, wanted)
}

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
  const a = quantity(live)
  return a !== undefined && a === quantity(wanted)
}

const SCALE: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
}

function quantity(text: string): number | undefined {
  const match = /^([0-9]+(?:\.[0-9]*)?|\.[0-9]+)((?:[eE][+-]?[0-9]+)|[numkMGTPE]i?|)$/.exec(text)
  if (!match) return undefined
  const [, digits = '', suffix = ''] = match
  if (/^[eE][+-]?[0-9]/.test(suffix)) return Number(`${digits}${suffix}`)
  const scale = SCALE[suffix]
  // Rounded: 0.1 is the same as 100m.
  return scale === undefined ? undefined : Number((Number(digits) * scale).toPrecision(12))
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
