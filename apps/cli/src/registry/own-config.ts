import { dirname, resolve } from 'node:path'
import { type Document, isScalar, isSeq, parseDocument, visit } from 'yaml'

type Variables = Readonly<Record<string, string | undefined>>

/** Keys with paths that may be relative to the folder of the file, in every form of the configuration. */
const SOURCE_PATHS = [
  ['file', 'path'],
  ['kubernetes', 'kubeconfig', 'path'],
]

/** A configuration file of the registry server, such that it means the same in another folder. A file that is not YAML stays as it is. */
export function movableConfig(text: string, file: string, variables: Variables): string {
  const document = parseDocument(text)
  if (document.errors.length > 0) return text // the server says what is wrong with it
  const folder = dirname(file)
  let isChanged = false
  for (const path of relativePaths(document)) {
    const value = document.getIn(path)
    if (typeof value !== 'string' || value === '') continue
    const absolute = resolve(folder, expanded(value, variables)).replaceAll('${', () => '$${')
    if (absolute === value) continue
    document.setIn(path, absolute)
    isChanged = true
  }
  visit(document, {
    Scalar(key, node) {
      if (key === 'key' || typeof node.value !== 'string') return
      const value = withOwnValues(node.value, variables)
      isChanged ||= value !== node.value
      node.value = value
    },
  })
  return isChanged ? document.toString() : text
}

function relativePaths(document: Document): (string | number)[][] {
  const items = (key: readonly string[]) => {
    const list = document.getIn(key)
    return isSeq(list) ? list.items.map((_, index) => [...key, index]) : []
  }
  const sources = [...items(['sources']), ...items(['registries'])]
  return [
    ...sources.flatMap((at) => SOURCE_PATHS.map((path) => [...at, ...path])),
    ['storage', 'path'],
    ...items(['sync', 'allowedFolders']).filter((at) => isScalar(document.getIn(at, true))),
  ]
}

const REFERENCE = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g

/** As the server puts variables into texts. One that is not set stays, for the server to name it. */
function expanded(text: string, variables: Variables): string {
  return text.replace(REFERENCE, (found, name: string | undefined, otherwise: string | undefined) => {
    if (name === undefined) return '${'
    return otherwise === undefined ? (variables[name] ?? found) : variables[name] || otherwise
  })
}

/**
 * Variables that make a program what it is: its pod has values of its own for them. A configuration that names one gets the user's value as
 * text; as a variable of the pod it would change how the server runs, or find the pod's value and not the user's.
 */
function isProgramVariable(name: string): boolean {
  if (name.startsWith('THV_')) return !name.startsWith('THV_REGISTRY_')
  return /^(HOME|PATH|PWD|USER|LOGNAME|SHELL|TMPDIR|HOSTNAME|POD_NAMESPACE|(NODE|LD|DYLD|MALLOC|GLIBC|OPENSSL|SSL|KUBERNETES|UV)_\w+)$/.test(
    name,
  )
}

/** Without references to such variables. */
function withOwnValues(text: string, variables: Variables): string {
  return text.replace(REFERENCE, (found, name: string | undefined, otherwise: string | undefined) => {
    if (name === undefined || !isProgramVariable(name)) return found
    const value = otherwise === undefined ? variables[name] : variables[name] || otherwise
    return value === undefined ? found : value.replaceAll('${', () => '$${')
  })
}

/** Settings of the server that the platform chooses. */
const CHOSEN: ReadonlySet<string> = new Set(['THV_REGISTRY_DATA_DIR', 'THV_REGISTRY_ADDRESS', 'THV_REGISTRY_INTERNAL_ADDRESS'])

/** The variables of the user that the server reads: its settings, those of libpq, and those that the configuration names. */
export function serverVariables(text: string, variables: Variables): Record<string, string> {
  const named = new Set([...text.matchAll(REFERENCE)].flatMap(([, name]) => (name === undefined || isProgramVariable(name) ? [] : [name])))
  return Object.fromEntries(
    Object.entries(variables).filter(
      (pair): pair is [string, string] =>
        pair[1] !== undefined && !CHOSEN.has(pair[0]) && (named.has(pair[0]) || /^(THV_REGISTRY_|PG[A-Z]+$)/.test(pair[0])),
    ),
  )
}
