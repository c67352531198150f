/** How a program ended. */
export interface ProgramEnd {
  readonly code?: number
  readonly signal?: string
  /** For people. */
  readonly message: string
}
