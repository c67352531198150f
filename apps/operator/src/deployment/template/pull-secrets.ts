type PullSecret = { readonly name: string }

/** Those of the lists in order, each name once. The operator's own defaults come last. */
export function pullSecrets(defaults: readonly string[], ...lists: readonly (readonly PullSecret[])[]): { name: string }[] {
  const names = [...lists.flatMap((list) => list.map(({ name }) => name)), ...defaults]
  return [...new Set(names.filter(Boolean))].map((name) => ({ name }))
}
