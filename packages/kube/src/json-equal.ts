/** Whether two values are the same JSON: members that are undefined count as absent, the order of members does not matter. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
    return a.every((item, index) => jsonEqual(item, b[index]))
  }
  const left = present(a)
  const right = new Map(present(b))
  return left.length === right.size && left.every(([key, value]) => right.has(key) && jsonEqual(value, right.get(key)))
}

function present(object: object): [string, unknown][] {
  return Object.entries(object).filter(([, value]) => value !== undefined)
}
