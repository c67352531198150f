/** The five design documents that the system implements. */
export type DesignDocument = '000' | '001' | '002' | '003' | '004'

/** The sort of sentence of the document that the row stands for. */
export type RequirementKind = 'feature' | 'edge' | 'rbac' | 'test' | 'docs' | 'future' | 'question' | 'review'

/**
 * The demand of a row. `behavior`: the system does something. `shape`: a resource or a manifest has a form (fields, values, defaults, what
 * admission rejects). `docs`: a page, a decision record or an example exists.
 */
export type Subject = 'behavior' | 'shape' | 'docs'

/**
 * One requirement of a design document.
 *
 * `planned`: nothing proves it yet. `met`: a passing test cites the id in its title, like `[003-014]`, and the proof fits the subject
 * (see `proof.ts`). `declined`: deliberately not built; `adr` says why.
 */
export interface Requirement {
  id: `${DesignDocument}-${string}`
  section: string
  line: number
  kind: RequirementKind
  /** Without it: `docs` for a row of kind `docs`, else `behavior`. */
  about?: Subject
  /** At most 20 words, in our own words. */
  text: string
  state: 'planned' | 'met' | 'declined'
  /** Path of the decision record below `docs/adr/`; only with `declined`. */
  adr?: string
}

export function subjectOf({ about, kind }: Requirement): Subject {
  return about ?? (kind === 'docs' ? 'docs' : 'behavior')
}
