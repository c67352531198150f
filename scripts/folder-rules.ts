import { dirname, posix } from 'node:path'

/*
 * Rules about the folders inside one package or app. Pure: works on paths and texts.
 */

export interface SourceFile {
  /** Below the repository, with forward slashes. */
  readonly path: string
  readonly text: string
}

/** Source files a folder may hold before it needs rooms. Tests do not count. */
export const MAX_FILES = 25

/** Folders with too many files, and groups of folders that import values from each other in a circle. */
export function folderOffences(files: readonly SourceFile[]): string[] {
  const sources = files.filter(({ path }) => !/\.test\.ts$|\/testing\//.test(path))
  return [...crowdedFolders(sources), ...folderCycles(sources)]
}

function crowdedFolders(files: readonly SourceFile[]): string[] {
  const counts = new Map<string, number>()
  for (const { path } of files) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1)
  return [...counts]
    .filter(([, count]) => count > MAX_FILES)
    .map(([folder, count]) => `${folder}: ${count} source files, at most ${MAX_FILES}: give the folder rooms named by what lives there`)
}

type Graph = Map<string, Map<string, string>>

function folderCycles(files: readonly SourceFile[]): string[] {
  return circles(folderGraph(files)).map(
    (examples) => `folders import each other in a circle (${examples.join('; ')}): move the shared file down, or the composing file up`,
  )
}

/** Folder → folder, with one import as an example. Types leave no trace at run time and do not count. */
function folderGraph(files: readonly SourceFile[]): Graph {
  const graph: Graph = new Map()
  for (const { path, text } of files) {
    const [area, name] = path.split('/')
    for (const specifier of relativeValueImports(text)) {
      const target = posix.normalize(posix.join(dirname(path), specifier))
      const [from, to] = [dirname(path), dirname(target)]
      if (from === to || !target.startsWith(`${area}/${name}/src`)) continue
      const edges = graph.get(from) ?? new Map<string, string>()
      graph.set(from, edges.set(to, edges.get(to) ?? `${path} → ${target}`))
    }
  }
  return graph
}

export function relativeValueImports(text: string): string[] {
  const found: string[] = []
  for (const [, clause = '', specifier = ''] of text.matchAll(/(?:^|[\s;])(?:import|export)\s([^'";]*?\sfrom\s)?\s*['"](\.[^'"]+)['"]/g)) {
    if (!isTypeOnly(clause)) found.push(specifier)
  }
  return found
}

function isTypeOnly(clause: string): boolean {
  if (/^type\s/.test(clause)) return true
  const names = /^\{([^}]*)\}/.exec(clause)?.[1]?.split(',') ?? []
  const given = names.map((name) => name.trim()).filter(Boolean)
  return given.length > 0 && given.every((name) => name.startsWith('type '))
}

/** Tarjan's strongly connected components of more than one folder, each as the example imports between its folders. */
function circles(graph: Graph): string[][] {
  const order = new Map<string, { index: number; low: number; open: boolean }>()
  const stack: string[] = []
  const found: string[][] = []
  const visit = (folder: string) => {
    const state = { index: order.size, low: order.size, open: true }
    order.set(folder, state)
    stack.push(folder)
    for (const next of graph.get(folder)?.keys() ?? []) {
      const known = order.get(next) ?? visit(next)
      if (known.open) state.low = Math.min(state.low, known.low)
    }
    if (state.low === state.index) {
      const members = new Set<string>()
      for (let last = stack.pop(); last !== undefined; last = stack.pop()) {
        members.add(last)
        const member = order.get(last)
        if (member) member.open = false
        if (last === folder) break
      }
      if (members.size > 1) found.push(edgesWithin(graph, members))
    }
    return state
  }
  for (const folder of graph.keys()) if (!order.has(folder)) visit(folder)
  return found
}

function edgesWithin(graph: Graph, members: ReadonlySet<string>): string[] {
  return [...members].flatMap((from) => [...(graph.get(from) ?? [])].filter(([to]) => members.has(to)).map(([, example]) => example))
}
