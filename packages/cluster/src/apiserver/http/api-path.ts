import { badRequest } from '../objects/status-error.ts'

/** Object or collection that a path under /api or /apis names. */
export interface ResourcePath {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly namespace: string | undefined
  readonly name: string | undefined
  readonly subresource: string | undefined
  /** The older way to ask for a watch: `watch` stands before the resource. */
  readonly watch?: boolean
}

/** Undefined when the path names no resource: discovery and everything else. */
export function parseResourcePath(path: string): ResourcePath | undefined {
  const [root, ...rest] = path
    .split('/')
    .filter((part) => part !== '')
    .map(decode)
  const [group, version, ...parts] = root === 'api' ? ['', ...rest] : root === 'apis' ? rest : []
  if (group === undefined || version === undefined || parts.length === 0) return undefined
  if (parts[0] === 'watch' && parts.length > 1) return watched({ group, version }, parts.slice(1))
  const [first, second, third, ...more] = parts
  // `namespaces` with something after the name is the namespace of that something, but for its own subresources.
  const inside = first === 'namespaces' && third !== undefined && !(group === '' && more.length === 0 && OF_NAMESPACE.has(third))
  if (inside) return place({ group, version, namespace: second }, [third, ...more])
  return place({ group, version, namespace: undefined }, parts)
}

function watched({ group, version }: { group: string; version: string }, parts: readonly string[]): ResourcePath | undefined {
  const inside = parts[0] === 'namespaces' && parts.length > 2
  const found = inside
    ? place({ group, version, namespace: parts[1] }, parts.slice(2))
    : place({ group, version, namespace: undefined }, parts)
  return found === undefined || found.subresource !== undefined ? undefined : { ...found, watch: true }
}

const OF_NAMESPACE: ReadonlySet<string> = new Set(['status', 'finalize'])

function place(base: Pick<ResourcePath, 'group' | 'version' | 'namespace'>, parts: readonly string[]): ResourcePath | undefined {
  const [plural, name, subresource, ...more] = parts
  if (plural === undefined || more.length > 0) return undefined
  return { ...base, plural, name, subresource }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw badRequest('the path is not well formed')
  }
}
