import type { DocumentProblem } from './catalog-entry.ts'

/** A problem of one entry of a registry file. Pointers go from the entry. */
export interface EntryProblem {
  /** Where the entry stands in the file, RFC 6901; '' for what concerns the file. */
  readonly entry: string
  /** Its name as far as it is known. */
  readonly name?: string
  /** `dropped`: the entry is not served. `warning`: it is, with a repair that the message names. */
  readonly effect: 'dropped' | 'warning'
  readonly problems: readonly DocumentProblem[]
}
