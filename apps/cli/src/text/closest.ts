/** The names nearest to what was typed, nearest first; none that has little to do with it. */
export function closestNames(typed: string, names: readonly string[], max = 3): string[] {
  const wanted = typed.toLowerCase()
  return names
    .map((name) => ({ name, distance: distanceOf(wanted, name.toLowerCase()) }))
    .filter(({ distance, name }) => distance <= Math.max(2, Math.floor(Math.min(Math.max(wanted.length, name.length), MAX_LENGTH) / 3)))
    .sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
    .slice(0, max)
    .map(({ name }) => name)
}

/** " Did you mean …?", or nothing. */
export function suggestion(typed: string, names: readonly string[]): string {
  const found = closestNames(typed, names)
  return found.length === 0 ? '' : ` Did you mean ${found.map((name) => JSON.stringify(name)).join(' or ')}?`
}

/** Levenshtein's, but a word that the other begins with or contains is near. Names are cut: this is for people, not for hostile lists. */
function distanceOf(a: string, b: string): number {
  const [left, right] = [a.slice(0, MAX_LENGTH), b.slice(0, MAX_LENGTH)]
  if (left.length >= 3 && right.includes(left)) return 1
  let above = Array.from({ length: right.length + 1 }, (_, column) => column)
  for (let row = 1; row <= left.length; row++) {
    const current = [row]
    for (let column = 1; column <= right.length; column++) {
      const replaced = (above[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1)
      current.push(Math.min(replaced, (above[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1))
    }
    above = current
  }
  return above[right.length] ?? 0
}

const MAX_LENGTH = 64
