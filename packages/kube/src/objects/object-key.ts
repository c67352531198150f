import type { KubeObject, ObjectKey } from './types.ts'

/** `namespace/name`, or `name` for objects without a namespace. Names never contain a slash, so the text is unambiguous. */
export function formatKey(key: ObjectKey): string {
  return key.namespace ? `${key.namespace}/${key.name}` : key.name
}

/** The inverse of `formatKey`. */
export function parseKey(text: string): ObjectKey {
  const slash = text.indexOf('/')
  return slash < 0 ? { name: text } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) }
}

export function keyOf(object: KubeObject): ObjectKey {
  const { namespace, name } = object.metadata
  return namespace ? { namespace, name } : { name }
}

/**
 * Resource versions of one server are decimal numbers that grow. Undefined when either is not such a number (some aggregated
 * servers): then nothing may be concluded about their order.
 */
export function compareResourceVersions(a: string | undefined, b: string | undefined): number | undefined {
  if (a === undefined || b === undefined || !DECIMAL.test(a) || !DECIMAL.test(b)) return undefined
  if (a.length !== b.length) return a.length - b.length
  return a === b ? 0 : a < b ? -1 : 1
}

const DECIMAL = /^(0|[1-9][0-9]*)$/
