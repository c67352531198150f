/** Lists of type set or map: their order means nothing. */
const unordered = new WeakSet<readonly unknown[]>()

export function asUnordered<T>(list: T[]): T[] {
  unordered.add(list)
  return list
}

/**
 * Equality as Kubernetes has it: by content whatever the declared types, numbers by value, sets and list maps without
 * regard to order.
 */
export function celEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (isNumber(a) && isNumber(b)) return typeof a !== typeof b && Number(a) === Number(b)
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) && Array.isArray(b)) return equalLists(a, b)
  if (a instanceof Map && b instanceof Map) {
    return a.size === b.size && [...a].every(([key, value]) => b.has(key) && celEqual(value, b.get(key)))
  }
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0
  if (a.constructor !== b.constructor) return false
  return a instanceof Map || Array.isArray(a) ? false : equalValues(a, b)
}

function isNumber(value: unknown): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint'
}

function equalLists(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false
  if (!unordered.has(a) && !unordered.has(b)) return a.every((item, index) => celEqual(item, b[index]))
  return a.every((item) => b.some((other) => celEqual(item, other)))
}

/** Times, durations, quantities, addresses and the like: their own fields, or what they are worth. */
function equalValues(a: object, b: object): boolean {
  const [left, right]: unknown[] = [a.valueOf(), b.valueOf()]
  if (left !== a) return left === right
  const fields = Object.keys(a) as (keyof object)[]
  return fields.length > 0 && fields.every((field) => celEqual(a[field], b[field]))
}
