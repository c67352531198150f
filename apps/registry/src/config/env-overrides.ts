import type { Schema } from './check-shape.ts'
import type { ProblemList } from './config-problem.ts'
import type { Env } from './env-values.ts'
import { nearestKey } from './nearest-key.ts'
import type { Tree, TreeEntry, TreeMap, TreeScalar } from './yaml-tree.ts'

const PREFIX = 'THV_REGISTRY_'

/** Variables with another name than their key. */
const ALIASES: Readonly<Record<string, readonly string[]>> = { [`${PREFIX}COMPRESS_RESPONSE`]: ['http', 'compression'] }

/** Variables that stand for no key. */
const PROCESS_VARIABLES = ['ADDRESS', 'INTERNAL_ADDRESS', 'DATA_DIR', 'LOG_LEVEL', 'INSECURE_URL', 'LEADER_ELECTION_ID'].map(
  (name) => PREFIX + name,
)

/** Set by charts of other releases, with the key to use instead. */
const INSTEAD: Readonly<Record<string, string>> = { [`${PREFIX}WATCH_NAMESPACE`]: 'set namespaces of the kubernetes source' }

export interface Overrides {
  readonly tree: TreeMap
  /** Variables that look like ours and mean nothing. */
  readonly warnings: readonly string[]
}

/** Variables win over the file: `THV_REGISTRY_DATABASE_HOST` is `database.host`. Lists, and what is in them, cannot be given. */
export function applyOverrides(tree: TreeMap, schema: Schema, env: Env): Overrides {
  const known = new Map([...scalarKeys(schema, []), ...Object.entries(ALIASES)])
  const warnings: string[] = []
  let result = tree
  for (const [variable, value] of Object.entries(env)) {
    if (!variable.startsWith(PREFIX) || !value || PROCESS_VARIABLES.includes(variable)) continue
    const path = known.get(variable)
    if (isServiceLink(variable, value)) continue
    if (path) result = withScalar(result, path, { variable, value })
    else if (INSTEAD[variable]) warnings.push(`${variable} has no effect: ${INSTEAD[variable]}`)
    else {
      const nearest = nearestKey(bare(variable), [...known.keys(), ...PROCESS_VARIABLES].map(bare))
      warnings.push(`${variable} has no effect: no key has this name${nearest ? `; did you mean ${PREFIX}${nearest}?` : ''}`)
    }
  }
  return { tree: result, warnings }
}

const bare = (variable: string) => variable.slice(PREFIX.length)

/** Kubernetes makes such variables for every Service: one called `thv-registry` gives THV_REGISTRY_PORT=tcp://… */
function isServiceLink(variable: string, value: string): boolean {
  return /_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?$/.test(variable) || /^(tcp|udp|sctp):\/\//.test(value)
}

/** A flag of the command line as if it stood in the file. */
export function withFlag(tree: TreeMap, path: readonly string[], { flag, value }: { flag: string; value: string }): TreeMap {
  return withScalar(tree, path, { variable: flag, value })
}

function withScalar(tree: TreeMap, path: readonly string[], { variable, value }: { variable: string; value: string }): TreeMap {
  const place = { line: 0, column: 0, variable }
  const scalar: TreeScalar = { kind: 'scalar', place, value, variables: [variable] }
  return put(tree, path, { place, value: scalar })
}

function put(tree: TreeMap, [key = '', ...rest]: readonly string[], entry: TreeEntry): TreeMap {
  const entries = new Map(tree.entries)
  const before = entries.get(key)
  if (rest.length === 0) entries.set(key, entry)
  else if (before === undefined || isEmpty(before.value)) {
    const place = before?.place ?? { line: 0, column: 0 }
    entries.set(key, { place, value: put({ kind: 'map', place, entries: new Map() }, rest, entry) })
  } else if (before.value.kind === 'map') entries.set(key, { ...before, value: put(before.value, rest, entry) })
  // Anything else is wrong in the file already, and will be said.
  return { ...tree, entries }
}

function isEmpty(tree: Tree): boolean {
  return tree.kind === 'scalar' && tree.value === null
}

function* scalarKeys(schema: Schema, path: readonly string[]): Generator<[string, readonly string[]]> {
  for (const [key, below] of Object.entries(schema.properties ?? {})) {
    const here = [...path, key]
    if (below.type === 'object') yield* scalarKeys(below, here)
    else if (below.type !== 'array') yield [PREFIX + here.join('_').toUpperCase(), here]
  }
}

/** For the reference. */
export function overrideVariables(schema: Schema): ReadonlyMap<string, string> {
  return new Map([...scalarKeys(schema, [])].map(([variable, path]) => [path.join('.'), variable]))
}

/** A switch of the environment; anything but true and false is a problem. */
export function environmentFlag(env: Env, variable: string, problems: ProblemList): boolean {
  const value = env[variable]?.trim().toLowerCase()
  if (value && value !== 'true' && value !== 'false') problems.add({ line: 0, column: 0, variable }, variable, 'must be true or false')
  return value === 'true'
}
