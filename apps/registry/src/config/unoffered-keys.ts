/** Keys of other releases and of the design documents that are rejected, so that they do not seem to work. */
export interface UnofferedKey {
  /** With `[]` for every element of a list. */
  readonly path: string
  readonly state: 'not offered' | 'later'
  /** The advice. */
  readonly advice: string
}

export const UNOFFERED_KEYS: readonly UnofferedKey[] = [
  { path: 'telemetry', state: 'later', advice: 'metrics are at /metrics of the internal address; remove it' },
  { path: 'audit', state: 'later', advice: 'remove it' },
  { path: 'fileStorage', state: 'not offered', advice: 'use storage.path' },
  { path: 'database.dynamicAuth', state: 'not offered', advice: 'use database.password or a pgpass file' },
  { path: 'database.maxMetaSize', state: 'not offered', advice: 'use sync.maxFileBytes and http.maxBodyBytes' },
  { path: 'skills', state: 'not offered', advice: 'this registry holds MCP servers only' },
  { path: 'plugins', state: 'not offered', advice: 'this registry holds MCP servers only' },
]

export function unofferedKey(path: string): string | undefined {
  const found = UNOFFERED_KEYS.find((key) => key.path === path)
  if (!found) return undefined
  return `${found.state === 'later' ? 'is not built yet' : 'is not offered'}: ${found.advice}`
}
