import type { JsonObject } from './json-rpc.ts'

/**
 * Whether a member is called like one of the known ones but for its case. Some parsers, such as that of Go, take it for the known one:
 * `{"method":"ping","Method":"tools/call"}` must not be judged as the one and carried out as the other.
 */
export type LookalikeCheck = (object: JsonObject) => boolean

export function lookalikesOf(names: readonly string[]): LookalikeCheck {
  const exact = new Set(names)
  const folded = new Set(names.map(foldName))
  return (object) => {
    for (const name in object) if (!exact.has(name) && folded.has(foldName(name))) return true
    return false
  }
}

/** Whether two members have one name but for its case. */
export function hasTwins(object: JsonObject): boolean {
  const seen = new Set<string>()
  for (const name in object) {
    const folded = foldName(name)
    if (seen.has(folded)) return true
    seen.add(folded)
  }
  return false
}

/** Both ways, so that the long s (U+017F) and the Kelvin sign (U+212A) become plain letters, as they do for these parsers. */
function foldName(name: string): string {
  return name.toUpperCase().toLowerCase()
}
