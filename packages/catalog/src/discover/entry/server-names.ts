export const GENERATED_NAMESPACE = 'dev.stacklok.toolhive'

export interface NamedResource {
  readonly kind: string
  readonly namespace: string
  readonly name: string
}

/** Neither a namespace nor a cluster name has a dot, so no two resources of one kind share a name. */
export function generatedName({ namespace, name }: NamedResource, clusterName: string | undefined): string {
  return `${GENERATED_NAMESPACE}/${clusterName === undefined ? '' : `${clusterName}.`}${namespace}.${name}`
}

export interface NameClaim {
  readonly resource: NamedResource
  /** The Gateway of its first remote; undefined for a direct URL. */
  readonly gateway: string | undefined
}

/**
 * Names for resources of different kinds that have one namespace and name: a Gateway's name is appended for those that a route
 * exports, the kind where that is not enough. `isTaken` knows the names of all other entries. Undefined: none is free.
 */
export function distinctNames(
  base: string,
  claims: readonly NameClaim[],
  isTaken: (name: string) => boolean,
): readonly (string | undefined)[] {
  if (claims.length === 1) return [base]
  const first = claims.map(({ gateway }) => (gateway === undefined ? base : `${base}-${gateway}`))
  const free = (name: string) => name === base || !isTaken(name)
  const isUnique = (name: string) => first.filter((other) => other === name).length === 1 && free(name)
  const names = claims.map(({ resource }, i) => {
    const name = first[i] ?? base
    if (isUnique(name)) return name
    const byKind = `${base}-${resource.kind.toLowerCase()}`
    return free(byKind) && !first.some((other) => other === byKind && isUnique(other)) ? byKind : undefined
  })
  return names
}
