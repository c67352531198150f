import { keyPath, type ProblemList } from './config-problem.ts'
import type { Tree, TreeEntry, TreeMap, TreeScalar } from './yaml-tree.ts'

export type Env = Readonly<Record<string, string | undefined>>

/**
 * Puts variables into texts: `${NAME}`, `${NAME:-otherwise}`; `$${` stands for `${`. What comes in stays one text, whatever is in it:
 * it is never read as YAML. Keys are left alone.
 */
export function expandVariables(tree: TreeMap, env: Env, problems: ProblemList): TreeMap {
  return expandMap(tree, '', { env, problems })
}

interface Context {
  readonly env: Env
  readonly problems: ProblemList
}

function expandMap(map: TreeMap, path: string, context: Context): TreeMap {
  const entries = new Map<string, TreeEntry>()
  for (const [key, { place, value }] of map.entries) entries.set(key, { place, value: expand(value, keyPath(path, key), context) })
  return { ...map, entries }
}

function expand(tree: Tree, path: string, context: Context): Tree {
  if (tree.kind === 'map') return expandMap(tree, path, context)
  if (tree.kind === 'list') return { ...tree, items: tree.items.map((item, index) => expand(item, `${path}[${index}]`, context)) }
  return typeof tree.value === 'string' && tree.value.includes('${') ? expandText(tree, path, context) : tree
}

const REFERENCE = /\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\})?/g

function expandText(scalar: TreeScalar, path: string, { env, problems }: Context): TreeScalar {
  const variables: string[] = []
  const value = String(scalar.value).replace(REFERENCE, (found: string, name?: string, otherwise?: string) => {
    if (found === '$${') return '${'
    if (name === undefined) {
      problems.add(
        scalar.place,
        path,
        'after "${" must come the name of a variable and a closing brace; "$${" stands for the two characters themselves',
      )
      return found
    }
    variables.push(name)
    const given = env[name]
    if (otherwise !== undefined) return given || otherwise.slice(2)
    if (given === undefined) problems.add(scalar.place, path, `the variable ${name} is not set; "\${${name}:-…}" would give another value`)
    return given ?? ''
  })
  return variables.length === 0 ? { ...scalar, value } : { ...scalar, value, variables }
}

/** Takes out of a text what came from variables, whatever wrote the text. */
export function hideVariables(message: string, tree: Tree, env: Env): string {
  let text = message
  for (const name of variablesIn(tree)) {
    const value = env[name]
    if (value !== undefined && value.length >= MIN_HIDDEN) text = text.replaceAll(value, `\${${name}}`)
  }
  return text
}

/** Shorter ones would only garble the text. */
const MIN_HIDDEN = 3

function variablesIn(tree: Tree): string[] {
  if (tree.kind === 'scalar') return [...(tree.variables ?? [])]
  const below = tree.kind === 'map' ? [...tree.entries.values()].map(({ value }) => value) : tree.items
  return below.flatMap(variablesIn)
}
