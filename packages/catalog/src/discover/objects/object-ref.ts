/** An object of the cluster, as warnings and origins name it. */
export interface ObjectRef {
  readonly kind: string
  readonly namespace: string
  readonly name: string
}

/** None of the parts can contain a slash. */
export function keyText(...parts: readonly string[]): string {
  return parts.join('/')
}

export function refText({ kind, namespace, name }: ObjectRef): string {
  return `${kind} ${namespace}/${name}`
}
