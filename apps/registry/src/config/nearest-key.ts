import { editDistance } from '@thv/catalog/search/edit-distance'

/** `; did you mean "x"?` for the nearest of the names, or nothing when none is near. */
export function didYouMean(typed: string, names: readonly string[]): string {
  const nearest = nearestKey(typed, names)
  return nearest === undefined ? '' : `; did you mean ${JSON.stringify(nearest)}?`
}

export function nearestKey(typed: string, names: readonly string[]): string | undefined {
  if (typed.length > MAX_LENGTH) return undefined
  const wanted = typed.toLowerCase()
  const max = Math.floor(wanted.length / 3)
  const near = names
    .map((name) => ({ name, distance: distance(wanted, name.toLowerCase(), max) }))
    .filter((candidate) => candidate.distance <= max)
    .sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
  return near[0]?.name
}

/** A word that the other begins with is near: `interval` and `intervalSeconds`. */
function distance(typed: string, name: string, max: number): number {
  const shorter = Math.min(typed.length, name.length)
  if (shorter >= 4 && (typed.startsWith(name) || name.startsWith(typed))) return Math.min(1, Math.abs(typed.length - name.length))
  return editDistance(typed, name, max)
}

const MAX_LENGTH = 64
