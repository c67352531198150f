import { placeOfEntry } from './check-shape.ts'
import type { Place } from './config-problem.ts'
import type { Tree, TreeMap } from './yaml-tree.ts'

/** Where a path stands; of what is not there, where the nearest thing around it stands. */
export function placeAt(root: TreeMap, path: string): Place {
  let tree: Tree = root
  let place: Place = root.place
  for (const step of stepsOf(path)) {
    if (tree.kind === 'map' && typeof step === 'string') {
      const entry = tree.entries.get(step)
      if (!entry) return place
      place = placeOfEntry(entry)
      tree = entry.value
    } else if (tree.kind === 'list' && typeof step === 'number') {
      const item: Tree | undefined = tree.items[step]
      if (!item) return place
      place = item.place
      tree = item
    } else return place
  }
  return place
}

function stepsOf(path: string): (string | number)[] {
  return [...path.matchAll(/\[(\d+)\]|"(?:[^"\\]|\\.)*"|[^.[\]"]+/g)].map(([step, index]) => {
    if (index !== undefined) return Number(index)
    return step.startsWith('"') ? String(JSON.parse(step)) : step
  })
}
