/** A registry file taken apart: each entry keeps its own text, so that writing it again loses nothing. */
export interface RegistryDocument {
  readonly format: DocumentFormat
  readonly entries: readonly DocumentEntry[]
  /** Groups of the ToolHive format; the upstream format has none. */
  readonly groups: readonly DocumentGroup[]
  /** RFC 3339, as the file has it. */
  readonly lastUpdated?: string
}

export type DocumentFormat = 'toolhive' | 'upstream'

export interface DocumentEntry {
  /** The name under which the registry server lists it; in the ToolHive format it may lack the namespace. */
  readonly name: string
  /** Upstream entries only: a name may have several. */
  readonly version?: string
  /** Which member of a ToolHive file holds it. Upstream entries are all `servers`. */
  readonly field: 'servers' | 'remote_servers'
  /** JSON of one line: members, order and numbers as in the file. */
  readonly text: string
  readonly tags: readonly string[]
}

export interface DocumentGroup {
  readonly name: string
  readonly text: string
}

/** Namespace that the ToolHive format leaves out. */
const DEFAULT_NAMESPACE = 'io.github.stacklok'

/** The name on the wire: two spellings of one name are one server. */
export function wireName(name: string): string {
  return name.includes('/') ? name : `${DEFAULT_NAMESPACE}/${name}`
}
