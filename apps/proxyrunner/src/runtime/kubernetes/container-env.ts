/** One variable of a container: a value, or where it comes from. */
export interface EnvVar {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: Readonly<Record<string, unknown>>
}

export interface EnvSources {
  /** Required by the transport: a server that listened elsewhere would not be found. */
  readonly forced: Readonly<Record<string, string>>
  /** `env_vars`. */
  readonly vars: Readonly<Record<string, string>>
  /** Of the pod patch. Secrets come this way too, as references. */
  readonly patch: readonly EnvVar[]
}

/**
 * One entry per name: forced > secrets > env_vars > the rest of the pod patch. Sorted by name, so that the same config is the same
 * template; but a variable that refers to another by $(NAME) comes after it, or Kubernetes would not fill it in.
 */
export function mergeEnv({ forced, vars, patch }: EnvSources): EnvVar[] {
  const isSecret = (entry: EnvVar) => entry.valueFrom?.['secretKeyRef'] !== undefined
  const merged = new Map<string, EnvVar>()
  for (const entry of patch.filter((candidate) => !isSecret(candidate))) merged.set(entry.name, entry)
  for (const [name, value] of Object.entries(vars)) merged.set(name, { name, value })
  for (const entry of patch.filter(isSecret)) merged.set(entry.name, entry)
  for (const [name, value] of Object.entries(forced)) merged.set(name, { name, value })
  return inOrder(merged)
}

function inOrder(entries: ReadonlyMap<string, EnvVar>): EnvVar[] {
  const placed = new Set<string>()
  const ordered: EnvVar[] = []
  const place = (name: string): void => {
    const entry = entries.get(name)
    if (entry === undefined || placed.has(name)) return
    placed.add(name) // before those it refers to: a circle ends here
    for (const reference of referencesOf(entry.value ?? '')) place(reference)
    ordered.push(entry)
  }
  for (const name of [...entries.keys()].sort()) place(name)
  return ordered
}

/** `$$(NAME)` is the text `$(NAME)`. */
function referencesOf(value: string): string[] {
  return [...value.matchAll(/\$\$|\$\(([^()]+)\)/g)].flatMap(([, name]) => (name === undefined ? [] : [name]))
}
