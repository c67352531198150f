import type { ProblemList } from './config-problem.ts'
import { placeAt } from './tree-place.ts'
import type { TreeMap } from './yaml-tree.ts'

/** Inputs of the rules besides the file. */
export interface NormaliseContext {
  readonly tree: TreeMap
  readonly problems: ProblemList
  readonly folder: string
  readonly dataDir: string
  readonly insecureUrls: boolean
}

/** At the place of a path, or of the nearest thing around it. */
export function problemAt({ problems, tree }: NormaliseContext, path: string, message: string): void {
  problems.add(placeAt(tree, path), path, message)
}
