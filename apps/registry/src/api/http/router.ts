import type { Method, PathParameters, Route } from './route.ts'

export interface Router {
  /** On the path as it came: an encoded slash belongs to its segment. One look-up per segment, whatever the number of routes. */
  find(path: string): Match | undefined
}

export interface Match {
  readonly node: RouteNode
  /** Of the parameters, in order, as they came. */
  readonly values: readonly string[]
}

/** All that is at one path. */
export interface RouteNode {
  readonly routes: ReadonlyMap<string, Route>
  /** For `Allow`. */
  readonly allow: string
  /** In the order of the path. */
  readonly parameters: readonly (keyof PathParameters)[]
}

export function createRouter(routes: readonly Route[]): Router {
  const root = newNode()
  for (const route of routes) insert(root, route)

  return {
    find(path) {
      const values: string[] = []
      let node = root
      let start = 1
      while (true) {
        const end = path.indexOf('/', start)
        const segment = end < 0 ? path.slice(start) : path.slice(start, end)
        const fixed = node.fixed.get(segment)
        if (fixed !== undefined) node = fixed
        else if (node.parameter !== undefined) {
          values.push(segment)
          node = node.parameter
        } else return undefined
        if (end < 0) return node.leaf && { node: node.leaf, values }
        start = end + 1
      }
    },
  }
}

interface Node {
  readonly fixed: Map<string, Node>
  parameter: Node | undefined
  leaf: Leaf | undefined
}

interface Leaf extends RouteNode {
  readonly routes: Map<Method, Route>
  allow: string
}

function insert(root: Node, route: Route): void {
  let node = root
  const parameters: (keyof PathParameters)[] = []
  for (const segment of route.path.slice(1).split('/')) {
    const name = /^\{(\w+)\}$/.exec(segment)?.[1]
    if (name === undefined) node = childOf(node, segment)
    else {
      parameters.push(name as keyof PathParameters)
      node.parameter ??= newNode()
      node = node.parameter
    }
  }
  node.leaf ??= { routes: new Map(), allow: '', parameters }
  if (node.leaf.routes.has(route.method)) throw new RangeError(`two routes for ${route.method} ${route.path}`)
  node.leaf.routes.set(route.method, route)
  const methods = [...node.leaf.routes.keys()].flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
  node.leaf.allow = [...methods, 'OPTIONS'].join(', ')
}

/** The standard's moving name for its newest version leads to the same place. */
const ALIASES: Readonly<Record<string, string>> = { 'v0.1': 'v0' }

function childOf(node: Node, segment: string): Node {
  const child = node.fixed.get(segment) ?? newNode()
  node.fixed.set(segment, child)
  const alias = ALIASES[segment]
  if (alias !== undefined) node.fixed.set(alias, child)
  return child
}

function newNode(): Node {
  return { fixed: new Map(), parameter: undefined, leaf: undefined }
}
