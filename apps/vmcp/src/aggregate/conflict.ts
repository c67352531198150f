import type { ItemKind } from './backend-lists.ts'

/**
 * - `lost`: another backend has the name; the item is not offered.
 * - `renamed`: offered under another name than the strategy would give it without the conflict.
 * - `unresolved`: several backends have the name and nothing says which one gets it; none is offered.
 * - `duplicate`: the backend lists the name twice; the first counts.
 * - `invalid`: the item has no usable name, or is a tool whose arguments are no object.
 */
export type ConflictOutcome = 'lost' | 'renamed' | 'unresolved' | 'duplicate' | 'invalid'

/** An item that is not offered as its backend lists it. */
export interface Conflict {
  readonly kind: ItemKind
  readonly outcome: ConflictOutcome
  readonly backend: string
  /** The name or URI at the backend. */
  readonly original: string
  /** The name that it would have had. */
  readonly name: string
  /** `renamed`: the name that clients see. */
  readonly as?: string
  /** `lost`: the backend that has the name; undefined where it is reserved for a composite tool. */
  readonly winner?: string | undefined
}
